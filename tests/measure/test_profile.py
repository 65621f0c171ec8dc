from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gnnperf.devices import DeviceSpec
from gnnperf.errors import MeasureError
from gnnperf.measure import Case, Library, Limits, Runner, profile
from gnnperf.measure.counters import HARDWARE_EVENTS, SOFTWARE_EVENTS, Counters

Build = Callable[..., list[Library]]

DEVICE = DeviceSpec(
    kind="cpu", name="a test", arch="x86_64", isa="avx2", cores=2, threads=2,
    peak_gflops_fp32=200.0, peak_gflops_fp64=100.0, bandwidth_gbps=50.0, source="made up",
)  # fmt: skip
QUICK = Limits(budget_s=0.001)


def case(library: Library, data: dict[str, Any], n: int) -> Case:
    return Case(library, {**data, "n": n}, ("y",), flops=1.0 * n, moved_bytes=16.0 * n)


def test_profile(build: Build, baseline: Library, runner: Runner, data: dict[str, Any]) -> None:
    found = profile(runner, case(baseline, data, 1000), DEVICE, QUICK, scaled=case(baseline, data, 500))
    assert found.threads == 2
    assert found.runtime_1_thread_s > 0
    assert found.gflops == pytest.approx(1000 / found.runtime_s * 1e-9)
    assert found.gbps == pytest.approx(16000 / found.runtime_s * 1e-9)
    assert found.flops_share == pytest.approx(found.gflops / 100)
    assert found.bandwidth_share == pytest.approx(found.gbps / 50)
    assert found.size_exponent is not None
    assert set(found.to_dict()) >= {"runtime_s", "runtime_1_thread_s", "flops_share", "counters"}


def test_what_is_unknown_is_absent(baseline: Library, runner: Runner, data: dict[str, Any]) -> None:
    unknown = DeviceSpec(kind="cpu", name="a", arch="x", isa="y", cores=1, threads=1, source="z")
    found = profile(runner, case(baseline, data, 1000), unknown, QUICK)
    assert (found.flops_share, found.bandwidth_share, found.size_exponent) == (None, None, None)


def test_a_nest_that_does_not_run_has_no_profile(build: Build, runner: Runner, data: dict[str, Any]) -> None:
    with pytest.raises(MeasureError, match="run_error, killed by SIGABRT"):
        profile(runner, case(build("abort();")[0], data, 1000), DEVICE, QUICK)


def test_software_events_count_the_block_over_all_threads() -> None:
    """The kernel counts these on every machine, so the machinery can be tested on any."""
    go, done = threading.Event(), threading.Event()

    def touch() -> None:
        go.wait()
        np.ones(1 << 22).sum()
        done.set()

    thread = threading.Thread(target=touch)
    thread.start()
    counters = Counters.open(SOFTWARE_EVENTS)
    if counters is None:
        go.set()
        pytest.skip("perf_event is not allowed here")
    with counters:
        go.set()
        done.wait()
    thread.join()
    assert counters.values["task_clock_ns"] > 0
    assert counters.values["page_faults"] > 0


def test_hardware_events_are_positive_or_absent() -> None:
    counters = Counters.open(HARDWARE_EVENTS)
    if counters is None:
        return
    with counters:
        sum(range(1000))
    assert all(value >= 0 for value in counters.values.values())
    assert Counters.open({"no such event": (99, 99)}) is None
