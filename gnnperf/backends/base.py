"""What the pipeline asks of a backend: to measure candidates of a program's tasks, and to put winners
together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gnnperf.measure import Evidence, Measurement, Timing
from gnnperf.measure.competitors import Competitor
from gnnperf.schedules import Schedule


class Candidate(Protocol):
    """A schedule to try, and where it comes from.

    neighbour, neighbour_kernel, distance: the task that lent it. score: what is expected of it, higher is
    better; only its order means something. words: for people.
    """

    @property
    def schedule(self) -> Schedule: ...
    @property
    def neighbour(self) -> str: ...
    @property
    def neighbour_kernel(self) -> str: ...
    @property
    def distance(self) -> float: ...
    @property
    def score(self) -> float: ...
    @property
    def words(self) -> str: ...


Tried = tuple[Any, Measurement]
"""A candidate and its measurement, which has a baseline and a speedup where it ran."""


def fastest_right(tried: Sequence[Tried]) -> Tried | None:
    """The fastest candidate that ran right, though it may not beat its baseline; None where none did."""
    right = [pair for pair in tried if pair[1].status == "ok" and pair[1].runtime_s]
    return min(right, key=lambda pair: pair[1].runtime_s or 0.0, default=None)


class Trials(Protocol):
    """What was tried on one task. number: its place among the program's tasks. baseline_name: of its own, as
    reports call it. tried: candidates, the best of them at least. winner: the one that beats the task's
    baseline; a backend that finds it of no use in the whole sets it to None and says why in `reason`."""

    number: int
    reason: str
    baseline_name: str
    tried: list[Tried]
    winner: Tried | None

    @property
    def task(self) -> Any: ...


@dataclass(frozen=True)
class Whole:
    """A whole program, before and after, timed in turn.

    tuned: that has speedups; equal to the baseline where that was kept. schedules: by number of the task.
    competitors: measurements of other implementations, by name. competitors_s: how long these took. note:
    what is to be said of it. evidence: what its results were verified on.
    """

    baseline: Timing
    tuned: Timing
    speedup: float = 1.0
    speedup_interval: tuple[float, float] | None = None
    kept_baseline: bool = True
    schedules: Mapping[int, Schedule] = field(default_factory=dict)
    competitors: Mapping[str, Measurement] = field(default_factory=dict)
    competitors_s: float = 0.0
    note: str = ""
    evidence: Evidence = field(default_factory=Evidence)


def unverifiable(evidence: Evidence) -> str:
    """What is said of results that could not be told from wrong ones."""
    silent = ", ".join(f"{name} ({why})" for name, why in evidence.unverifiable.items())
    return f"not verifiable with these inputs: {silent}; give others with --inputs or --seed"


class Bench(Protocol):
    """One task whose unscheduled code was run. baseline: of one call; baseline_name: for reports;
    baseline_note: why it is that one."""

    baseline: Timing
    baseline_name: str
    baseline_note: str

    def measure(self, candidates: Sequence[Any], count: int) -> Iterator[Tried]:
        """Verify and time, one after another as asked for, the first `count` candidates that are different
        programs; with them those before that do not apply."""

    def finals(
        self, tried: Sequence[Tried], competitors: Sequence[Competitor]
    ) -> tuple[list[Tried], Mapping[str, Measurement]]:
        """The tried, the best of them once more in turn with the baseline and with competitors, where they
        were not; and what became of the competitors, by name."""


class Executor(Protocol):
    """Builds and measures schedules of the tasks of one program. Raises GnnperfError, where a candidate is
    not to blame. baseline_name, baseline_note: of the whole program, as far as is known yet. verifies_whole:
    whether `assemble` verifies the winners together."""

    baseline_name: str
    baseline_note: str

    @property
    def verifies_whole(self) -> bool: ...

    def prepare(self, measuring: bool) -> None:
        """Get the inputs of the tasks, or what their graphs need of them."""

    def whole(self) -> Timing | None:
        """Of the whole program's baseline; None where it is measured at the end, or not at all."""

    def opened(self, task: Any, number: int) -> AbstractContextManager[Bench]:
        """A task, ready to be measured, until the context closes."""

    def assemble(self, trials: Sequence[Trials]) -> Whole | None:
        """Put winners back, verify and measure the whole; None where the tasks are all there is."""

    def provenance(self, measurement: Measurement) -> Mapping[str, Any]:
        """What a record says of how it was measured."""

    def write(self, folder: Path, trials: Sequence[Trials], report: str) -> None:
        """Write what was found in forms that outlive gnnperf. report: text of report.json. May be called
        after `close`. Raises GnnperfError."""

    def close(self) -> None:
        """End all processes, and remove temporary files."""
