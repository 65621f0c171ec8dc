"""Other libraries that a task is timed beside: what else one would have called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

from gnnperf.frontends.tvm import TvmTask
from gnnperf.measure import Measurement, speedup_interval
from gnnperf.measure.measurement import Status
from gnnperf.retrieval.report import Beside, Timing

Turn = Callable[[], float]
"""Seconds of a run of its own, whenever it is called."""


class NoPlayer(Exception):
    """A library does not take part: (status, why)."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(status, why)
        self.status: Status = status
        self.why = why


class Library(Protocol):
    """name: for people, as in `--beside`."""

    @property
    def name(self) -> str: ...

    def play(self, task: TvmTask, stack: ExitStack) -> Turn:
        """Start the library's implementation of a task, verified, until the stack closes. Raises NoPlayer."""


def comparison(name: str, theirs: Measurement, ours: Timing | None) -> Beside:
    """What is said of a library. ours: of what was kept."""
    if theirs.runtime_s is None or theirs.interval_s is None or ours is None:
        return Beside(name, theirs.status, detail=theirs.detail)
    timing = Timing(theirs.runtime_s, theirs.interval_s)
    speedup = theirs.runtime_s / ours.runtime_s
    return Beside(name, "ok", timing, speedup, speedup_interval(theirs.interval_s, ours.interval_s))


@contextmanager
def joined(
    libraries: Sequence[Library], task: TvmTask
) -> Iterator[tuple[dict[str, Turn], dict[str, Measurement]]]:
    """(those that take part, why the others do not), by name."""
    turns: dict[str, Turn] = {}
    absent: dict[str, Measurement] = {}
    with ExitStack() as stack:
        for library in libraries:
            try:
                turns[library.name] = library.play(task, stack)
            except NoPlayer as reason:
                absent[library.name] = Measurement(reason.status, detail=reason.why)
        yield turns, absent
