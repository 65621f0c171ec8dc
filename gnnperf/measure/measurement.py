"""One measurement: limits going in, status and figures coming out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
    memory_bytes: what a candidate may allocate beyond its arrays; None: max(1 GiB, 4 x arrays),
        never more than the machine has free.
    """

    timeout_s: float = 10.0
    budget_s: float = 0.15
    target: float = 0.01
    min_samples: int = 6
    max_samples: int = 2000
    cutoff: float = 10.0
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A timed run set of one candidate, beside its baseline where there was one.

    Only status "ok" has figures. `runtime_s` and `baseline_s` are medians, intervals are 95%
    intervals (see `median_interval`); `detail` is one line for people.
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)
