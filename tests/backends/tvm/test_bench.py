"""The bench survives candidates that crash, hang, or compute something else."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.bench import TraceBench
from gnnperf.backends.tvm.kernel import Kernel, build_kernel
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.frontends.tvm.workloads import TvmWorkload

LIMITS = BenchLimits(build_s=0.5, run_s=1.0, sample_s=0.001)
TINY = TvmWorkload("matmul", {"m": 16, "n": 16, "k": 16})


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    import_tvm()
    set_runtime_threads()


waiting_here: list[str] = []
"""Compilations in this process (a fork of the tests', in which it is empty) that wait for one another."""


def marked(module: Any, what: str) -> Any:
    """The module with an attribute that `faulty` looks at."""
    return module.with_attr("fault", what)


def faulty(module: Any, target: Any) -> Kernel:
    """Builds as usual, but what is marked misbehaves."""
    fault = str(module.attrs["fault"]) if module.attrs and "fault" in module.attrs else ""
    if fault == "refuses to compile":
        raise ValueError("no such instruction")
    if fault == "kills the compiler":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "compiles for ever":
        time.sleep(60)
    if fault == "waits for another":
        waiting_here.append(fault)
        time.sleep(0.2)
        if len(waiting_here) > 1:
            time.sleep(60)
    return Faulty(build_kernel(module, target), fault)


class Faulty:
    def __init__(self, kernel: Kernel, fault: str) -> None:
        self.kernel, self.fault = kernel, fault

    def run(self, arguments: Sequence[Any]) -> None:
        if self.fault == "aborts":
            os.abort()
        if self.fault == "runs for ever":
            while True:
                pass
        if self.fault == "computes nothing":
            return
        if self.fault == "talks":
            socket.create_connection(("127.0.0.1", 9))
        self.kernel.run(arguments)

    def times_s(self, arguments: Sequence[Any], repeats: int, sample_s: float) -> list[float]:
        return self.kernel.times_s(arguments, repeats, sample_s)


@pytest.fixture
def bench() -> TraceBench:
    return TraceBench(TINY.build(), host_target(), LIMITS, faulty)


def test_right_schedules_are_timed(bench: TraceBench) -> None:
    module = TINY.build()
    outcomes = bench.measure([module, module])
    assert [outcome.status for outcome in outcomes] == ["ok", "ok"]
    for outcome in outcomes:
        assert len(outcome.samples_s) == LIMITS.repeats and not outcome.once
        assert 0 < outcome.runtime_s < 0.1  # type: ignore[operator]
    assert len(bench.baseline.samples_s) == LIMITS.repeats


@pytest.mark.parametrize(
    ("fault", "status", "detail"),
    [
        ("refuses to compile", "build_error", "no such instruction"),
        ("kills the compiler", "build_error", "SIGSEGV"),
        ("compiles for ever", "timeout", "compiling took longer than 0.5 s"),
        ("aborts", "run_error", "SIGABRT"),
        ("runs for ever", "timeout", "running took longer than 1 s"),
        ("computes nothing", "wrong_result", "elements differ"),
        ("talks", "run_error", "Operation not permitted"),
    ],
)
def test_one_fault_costs_one_candidate(bench: TraceBench, fault: str, status: str, detail: str) -> None:
    module = TINY.build()
    outcomes = bench.measure([module, marked(module, fault), module])
    assert [outcome.status for outcome in outcomes] == ["ok", status, "ok"]
    assert detail in outcomes[1].detail
    assert outcomes[1].samples_s == ()
    assert bench.measure([module])[0].status == "ok"


def test_compilations_that_wait_for_one_another_are_done_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # also where OpenMP has bound this process to one processor
    bench = TraceBench(TINY.build(), host_target(), replace(LIMITS, build_s=2.0), faulty)
    waiting = marked(TINY.build(), "waits for another")
    outcomes = bench.measure([waiting, waiting])
    assert [(outcome.status, outcome.detail) for outcome in outcomes] == [("ok", "")] * 2


def test_a_hopeless_candidate_is_run_twice_only(bench: TraceBench) -> None:
    big = TvmWorkload("matmul", {"m": 96, "n": 96, "k": 96})
    other = TraceBench(big.build(), host_target(), LIMITS)
    (outcome,) = other.measure([big.build()], best_s=1e-9)
    assert outcome.once and len(outcome.samples_s) == 1


def test_a_baseline_that_does_not_compile_is_an_error() -> None:
    with pytest.raises(MeasureError, match="no such instruction"):
        TraceBench(marked(TINY.build(), "refuses to compile"), host_target(), LIMITS, faulty)
