"""One measurement: limits going in, status and figures coming out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from gnnperf.measure.statistics import Interval, interval_of_runs, paired_interval, speedup_interval

Status = Literal["ok", "wrong_result", "not_applicable", "build_error", "run_error", "timeout"]
STATUSES: tuple[Status, ...] = (
    "ok", "wrong_result", "not_applicable", "build_error", "run_error", "timeout",
)  # fmt: skip


Runs = tuple[tuple[float, ...], ...]
"""Seconds of single runs, by process."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how precisely to measure one candidate.

    timeout_s: wall time for one call, and for the verification. Waiting for the machine is free.
    budget_s: wall time spent on timed runs once `min_samples` pairs are there.
    target: relative half-width of the 95% interval of each median at which timing stops.
    min_samples: pairs always taken; six is the fewest whose interval reaches 95%.
    cutoff: a candidate this many times slower than the baseline is not timed any further.
    memory_bytes: what a candidate may allocate beyond its arrays; None: half of the machine's
        memory, or 4 x arrays if that is more, never more than 80% of what is free.
    processes: repeat in so many fresh processes, sharing the budget: memory layout and thread
        placement differ from process to process, and one process cannot see it.
    """

    timeout_s: float = 10.0
    budget_s: float = 0.15
    target: float = 0.01
    min_samples: int = 6
    max_samples: int = 2000
    cutoff: float = 10.0
    memory_bytes: int | None = None
    processes: int = 1


@dataclass(frozen=True, slots=True)
class Timing:
    """Median runtime with its 95% interval, in seconds."""

    runtime_s: float
    interval_s: Interval


@dataclass(frozen=True, slots=True)
class Measurement:
    """A timed run set of one candidate, beside its baseline where there was one.

    Only status "ok" has figures. `runtime_s` and `baseline_s` are medians, intervals are 95%
    intervals (see `interval_of_runs`); `detail` is one line for people. `counters` holds hardware
    events of one run where they were asked for and the machine counts them. `runs_s` are the samples
    themselves, by process; they are not kept with what is recorded.
    """

    status: Status
    runtime_s: float | None = None
    interval_s: Interval | None = None
    samples: int = 0
    baseline_s: float | None = None
    baseline_interval_s: Interval | None = None
    speedup: float | None = None
    speedup_interval: Interval | None = None
    detail: str = ""
    threads: int = 0
    compiler: str = ""
    flags: str = ""
    counters: Mapping[str, float] | None = None
    runs_s: Runs = field(default=(), repr=False, compare=False)
    baseline_runs_s: Runs = field(default=(), repr=False, compare=False)

    @classmethod
    def from_samples(cls, candidate_s: Sequence[float], baseline_s: Sequence[float] = ()) -> Measurement:
        """An "ok" measurement from the runtimes of single runs, in seconds, of one process. baseline_s: of
        the baseline, in turn with them where there are as many."""
        return cls.from_runs([candidate_s], [baseline_s] if baseline_s else [])

    @classmethod
    def from_runs(
        cls, candidate_s: Sequence[Sequence[float]], baseline_s: Sequence[Sequence[float]] = ()
    ) -> Measurement:
        """As `from_samples`, from several processes."""
        runtime_s, lo, hi = interval_of_runs(candidate_s)
        runs = tuple(map(tuple, candidate_s))
        found = cls("ok", runtime_s, (lo, hi), sum(map(len, runs)), runs_s=runs)
        return found.over(cls.from_runs(baseline_s)) if baseline_s else found

    @property
    def timing(self) -> Timing:
        """Of a measurement whose status is "ok"."""
        assert self.runtime_s is not None and self.interval_s is not None
        return Timing(self.runtime_s, self.interval_s)

    def over(self, baseline: Timing | Measurement) -> Measurement:
        """The same with its speedup over a baseline, the ratio of medians; of what failed, itself.

        baseline: a Measurement where both took turns. The interval is then `paired_interval`, widened to hold
        the speedup; else that of the ratio of two medians."""
        timing = baseline if isinstance(baseline, Timing) else baseline.timing
        if self.runtime_s is None or self.interval_s is None:
            return self
        speedup = timing.runtime_s / self.runtime_s
        runs_s = () if isinstance(baseline, Timing) else baseline.runs_s
        if runs_s and [*map(len, runs_s)] == [*map(len, self.runs_s)]:
            lo, hi = paired_interval(runs_s, self.runs_s)
        else:
            lo, hi = speedup_interval(timing.interval_s, self.interval_s)
        return replace(
            self,
            baseline_s=timing.runtime_s,
            baseline_interval_s=timing.interval_s,
            speedup=speedup,
            speedup_interval=(min(lo, speedup), max(hi, speedup)),
            baseline_runs_s=runs_s,
        )

    @property
    def faster_beyond_noise(self) -> bool:
        """The whole interval of the speedup lies above 1."""
        return self.speedup_interval is not None and self.speedup_interval[0] > 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without the samples."""
        return {k: v for k, v in asdict(self).items() if k not in ("runs_s", "baseline_runs_s")}


def pool(runs: Sequence[Measurement]) -> Measurement:
    """One measurement of several processes (see `from_runs`), or the first failure."""
    failed = next((run for run in runs if run.status != "ok"), None)
    if failed is not None or len(runs) == 1:
        return failed or runs[0]
    found = Measurement.from_runs(
        [r for run in runs for r in run.runs_s], [r for run in runs for r in run.baseline_runs_s]
    )
    about = runs[0]
    return replace(
        found, threads=about.threads, compiler=about.compiler, flags=about.flags, counters=about.counters
    )
