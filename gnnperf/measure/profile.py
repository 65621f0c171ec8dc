"""The dynamic profile: how a nest runs on this machine, in shares of what the machine can do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gnnperf.devices import DeviceSpec
from gnnperf.errors import MeasureError
from gnnperf.measure.library import Library
from gnnperf.measure.measurement import Limits, Measurement
from gnnperf.measure.runner import Runner


@dataclass(frozen=True)
class Case:
    """A compiled nest with its data (as `Runner.measure` takes them) and its work.

    flops: floating-point operations of one run. moved_bytes: distinct bytes read and written.
    dtype: of its arithmetic, deciding which peak it is compared with.
    """

    library: Library
    data: Mapping[str, Any]
    outputs: tuple[str, ...]
    inouts: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    flops: float = 0.0
    moved_bytes: float = 0.0
    dtype: str = "float64"


@dataclass(frozen=True, slots=True)
class Profile:
    """Median runtimes on one and on all threads, and what they achieve; None is unknown, not zero.

    flops_share, bandwidth_share: gflops and gbps over the measured peaks of all threads.
    size_exponent: d ln(runtime) / d ln(flops) from a second problem size.
    counters: hardware events of one run on all threads, where perf_event allows them.
    """

    runtime_s: float
    runtime_1_thread_s: float
    threads: int
    gflops: float
    gbps: float
    flops_share: float | None = None
    bandwidth_share: float | None = None
    size_exponent: float | None = None
    counters: Mapping[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def profile(
    runner: Runner,
    case: Case,
    device: DeviceSpec,
    limits: Limits = Limits(),  # noqa: B008  (immutable)
    scaled: Case | None = None,
) -> Profile:
    """Run a nest on all threads and on one, and relate it to the peaks of `device` (`probe()`).

    scaled: the same nest at another problem size, for `size_exponent`.
    Raises MeasureError when a run fails: what is profiled is the baseline, which must run.
    """
    on_all = _time(runner, case, limits, runner.threads, counters=True)
    runtime_s = on_all.timing.runtime_s
    on_one = on_all if runner.threads == 1 else _time(runner, case, limits, 1)
    peak = {"float32": device.peak_gflops_fp32, "float64": device.peak_gflops_fp64}.get(case.dtype)
    gflops, gbps = case.flops / runtime_s * 1e-9, case.moved_bytes / runtime_s * 1e-9
    exponent = None
    if scaled is not None and scaled.flops > 0 and case.flops > 0 and scaled.flops != case.flops:
        other_s = _time(runner, scaled, limits, runner.threads).timing.runtime_s
        exponent = math.log(other_s / runtime_s) / math.log(scaled.flops / case.flops)
    return Profile(
        runtime_s,
        on_one.timing.runtime_s,
        runner.threads,
        gflops,
        gbps,
        gflops / peak if peak else None,
        gbps / device.bandwidth_gbps if device.bandwidth_gbps else None,
        exponent,
        on_all.counters,
    )


def _time(runner: Runner, case: Case, limits: Limits, threads: int, counters: bool = False) -> Measurement:
    measured = runner.measure(
        None, case.library, case.data, case.outputs, case.inouts, None, limits,
        threads=threads, counters=counters, updated=case.updated,
    )  # fmt: skip
    if measured.status != "ok":
        raise MeasureError(f"profiling {case.library.symbol}: {measured.status}, {measured.detail}")
    return measured
