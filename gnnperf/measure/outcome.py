"""Measuring one schedule of many: verified, timed a few times, and given up early where it is hopeless."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from gnnperf.errors import last_line
from gnnperf.measure.measurement import Measurement, Status
from gnnperf.measure.problem import Arrays, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """repeats: timed samples, each of at least `sample_s`, the mean of as many runs as that takes. cutoff: a
    schedule that is this many times slower than the best so far, and slower than `hopeless_s`, is timed by
    one run alone. run_s: wall time for one schedule, with its verification."""

    repeats: int
    sample_s: float
    cutoff: float
    hopeless_s: float
    run_s: float


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

    @property
    def measurement(self) -> Measurement:
        """The median with its interval, without a baseline."""
        if self.status != "ok":
            return Measurement(self.status, detail=self.detail)
        return Measurement.from_samples(self.samples_s)

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


def checked(run: Callable[[], Arrays], problem: Problem) -> Outcome:
    """Of one run, which gives what it computed; without times."""
    try:
        fault = problem.verify(run())
    except Exception as error:
        return Outcome("run_error", detail=last_line(error))
    return Outcome("wrong_result", detail=fault[:300]) if fault else Outcome("ok")


def timed(
    run: Callable[[], Arrays],
    times_s: Callable[[int, float], list[float]],
    problem: Problem,
    sampling: Sampling,
    best_s: float,
) -> Outcome:
    """Verify a schedule, then time it. times_s: (number of samples, least seconds of each, 0 for a single
    run) -> mean seconds of a run. best_s: the best runtime so far."""
    outcome = checked(run, problem)
    if outcome.status != "ok":
        return outcome
    try:
        once_s = times_s(1, 0.0)[0]
        if once_s > max(sampling.cutoff * best_s, sampling.hopeless_s):
            return Outcome("ok", (once_s,), once=True)
        return Outcome("ok", tuple(times_s(sampling.repeats, sampling.sample_s)))
    except Exception as error:
        return Outcome("run_error", detail=last_line(error))
