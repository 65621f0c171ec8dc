"""What measuring one schedule gives, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from gnnperf.measure.measurement import Status


@dataclass(frozen=True, slots=True)
class BenchLimits:
    """build_s, run_s: wall time for compiling one candidate, and for one of its runs with the verification.
    reference_s: the same for a run of the unscheduled function. repeats: timed samples, each of at least
    `sample_s`, the mean of as many runs as that takes. cutoff: a candidate whose second run is this many
    times slower than the best so far is timed by that run alone. memory_bytes: what it may allocate.
    """

    build_s: float = 4.0
    run_s: float = 5.0
    reference_s: float = 30.0
    repeats: int = 3
    sample_s: float = 0.01
    cutoff: float = 3.0
    memory_bytes: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Outcome:
    """One measured schedule. `samples_s`: means of runs, after a warm-up, only where status is "ok".
    once: a hopeless candidate, whose one sample is a single run. build_s: time to compile it."""

    status: Status
    samples_s: tuple[float, ...] = ()
    once: bool = False
    build_s: float = 0.0
    detail: str = ""

    @property
    def runtime_s(self) -> float | None:
        """The median of the samples."""
        return median(self.samples_s) if self.samples_s else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, without what is empty."""
        plain = {**asdict(self), "samples_s": [round_s(s) for s in self.samples_s]}
        plain["build_s"] = round(self.build_s, 3)
        return {key: value for key, value in plain.items() if value not in ([], False, "", 0.0)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Outcome:
        """What `to_dict` gave; further keys are ignored."""
        return Outcome(
            values["status"],
            tuple(values.get("samples_s", ())),
            values.get("once", False),
            values.get("build_s", 0.0),
            values.get("detail", ""),
        )


def round_s(seconds: float) -> float:
    """To a nanosecond's tenth: more digits are noise."""
    return round(seconds, 10)
