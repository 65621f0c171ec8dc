from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.devices import DeviceSpec
from gnnperf.errors import MeasureError
from gnnperf.measure import Case, Library, Limits, Runner, counters, profile
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


def test_counts_are_summed_over_threads_and_scaled_by_the_share_that_was_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On replies of the kernel, as containers seldom let processes count."""
    requests: list[int] = []
    share = {7: (100, 40, 10), 8: (30, 40, 40), 9: (5, 40, 0)}  # thread: value, time enabled, time running

    def reply(kind: int, config: int, thread: int) -> int:
        assert (kind, config) == (0, 3)
        answer = tmp_path / str(thread)
        answer.write_bytes(struct.pack("<3Q", *share[thread]))
        return os.open(answer, os.O_RDONLY)

    monkeypatch.setattr(counters, "_perf_event_open", reply)
    monkeypatch.setattr(counters.Path, "iterdir", lambda _: [Path(str(thread)) for thread in share])
    monkeypatch.setattr(counters.fcntl, "ioctl", lambda file, request, _: requests.append(request))
    found = Counters.open({"cache_misses": HARDWARE_EVENTS["cache_misses"]})
    assert found is not None
    with found:
        assert requests == [0x2400] * 3
    assert requests[3:] == [0x2401] * 3
    assert found.values == {"cache_misses": 100 * 4 + 30}


def test_software_events_count_the_block_over_all_threads() -> None:
    """The kernel counts these itself, on every machine on which it may be asked to."""
    go, done = threading.Event(), threading.Event()

    def touch() -> None:
        go.wait()
        np.ones(1 << 22).sum()
        done.set()

    thread = threading.Thread(target=touch)
    thread.start()
    found = Counters.open(SOFTWARE_EVENTS)
    with found or nullcontext():
        go.set()
        done.wait()
    thread.join()
    if found is None:
        assert Counters.open(HARDWARE_EVENTS) is None, "perf_event as a whole is refused"
    else:
        assert found.values["task_clock_ns"] > 0
        assert found.values["page_faults"] > 0


def test_a_thread_that_ended_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = Counters.open(SOFTWARE_EVENTS)
    with allowed or nullcontext():
        pass
    thread = threading.Thread(target=lambda: None)
    thread.start()
    ended = thread.native_id
    thread.join()
    monkeypatch.setattr(Path, "iterdir", lambda _: iter([Path(str(ended)), Path(str(os.getpid()))]))
    found = Counters.open(SOFTWARE_EVENTS)
    assert (found is None) == (allowed is None)
    with found or nullcontext():
        sum(range(10_000))
    assert found is None or found.values["task_clock_ns"] > 0


def test_hardware_events_are_positive_or_absent() -> None:
    found = Counters.open(HARDWARE_EVENTS)
    with found or nullcontext():
        sum(range(1000))
    assert found is None or all(value >= 0 for value in found.values.values())
    assert Counters.open({"no such event": (99, 99)}) is None
