"""One measurement: limits going in, status and figures coming out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from gnnperf.measure.statistics import Interval, median_interval, speedup_interval

Status = Literal["ok", "wrong_result", "not_applicable", "build_error", "run_error", "timeout"]
STATUSES: tuple[Status, ...] = (
    "ok", "wrong_result", "not_applicable", "build_error", "run_error", "timeout",
)  # fmt: skip


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
    intervals (see `median_interval`); `detail` is one line for people. `counters` holds hardware
    events of one run where they were asked for and the machine counts them.
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

    @classmethod
    def from_samples(cls, candidate_s: Sequence[float], baseline_s: Sequence[float] = ()) -> Measurement:
        """An "ok" measurement from the runtimes of single runs, in seconds."""
        median, lo, hi = median_interval(candidate_s)
        if not baseline_s:
            return cls("ok", median, (lo, hi), len(candidate_s))
        base, base_lo, base_hi = median_interval(baseline_s)
        return cls(
            "ok",
            median,
            (lo, hi),
            len(candidate_s),
            base,
            (base_lo, base_hi),
            base / median,
            speedup_interval((base_lo, base_hi), (lo, hi)),
        )

    @property
    def timing(self) -> Timing:
        """Of a measurement whose status is "ok"."""
        assert self.runtime_s is not None and self.interval_s is not None
        return Timing(self.runtime_s, self.interval_s)

    def over(self, baseline: Timing) -> Measurement:
        """The same with its speedup over a baseline; of what failed, itself."""
        if self.runtime_s is None or self.interval_s is None:
            return self
        return replace(
            self,
            baseline_s=baseline.runtime_s,
            baseline_interval_s=baseline.interval_s,
            speedup=baseline.runtime_s / self.runtime_s,
            speedup_interval=speedup_interval(baseline.interval_s, self.interval_s),
        )

    @property
    def faster_beyond_noise(self) -> bool:
        """The whole interval of the speedup lies above 1."""
        return self.speedup_interval is not None and self.speedup_interval[0] > 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def pool(runs: Sequence[Measurement]) -> Measurement:
    """One measurement of several processes: the first failure, or the median of the medians with an
    interval that holds all their intervals."""
    failed = next((run for run in runs if run.status != "ok"), None)
    if failed is not None or len(runs) == 1:
        return failed or runs[0]
    runtime_s, interval_s = _envelope([run.runtime_s for run in runs], [run.interval_s for run in runs])
    pooled = replace(
        runs[0], runtime_s=runtime_s, interval_s=interval_s, samples=sum(run.samples for run in runs)
    )
    if pooled.baseline_interval_s is None:
        return pooled
    baseline_s, baseline_interval_s = _envelope(
        [run.baseline_s for run in runs], [run.baseline_interval_s for run in runs]
    )
    return replace(
        pooled,
        baseline_s=baseline_s,
        baseline_interval_s=baseline_interval_s,
        speedup=baseline_s / runtime_s,
        speedup_interval=speedup_interval(baseline_interval_s, interval_s),
    )


def _envelope(
    medians: Sequence[float | None], intervals: Sequence[Interval | None]
) -> tuple[float, Interval]:
    known = [interval for interval in intervals if interval is not None]
    median, _, _ = median_interval([m for m in medians if m is not None])
    return median, (min(lo for lo, _ in known), max(hi for _, hi in known))
