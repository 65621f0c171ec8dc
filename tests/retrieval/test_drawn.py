"""Candidates drawn from MetaSchedule's rules: right schedules of the task, the same ones every time."""

from __future__ import annotations

from typing import Any

import pytest

from gnnperf.frontends.tvm import TvmTask, program_key
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target
from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.measure.confine import available_threads
from gnnperf.retrieval.tensor import drawn as module
from gnnperf.retrieval.tensor.drawn import SOURCE, drawn
from gnnperf.tuning.tensor.server import BenchServer


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    import_tvm()
    monkeypatch.setattr(module, "DRAWN", 12)


def test_they_are_different_and_the_same_every_time() -> None:
    task = TvmTask("product", Workload("matmul", {"m": 32, "n": 48, "k": 24}).build())
    first = drawn(task, host_target())
    keys = [candidate.key for candidate in first]
    assert 6 <= len(keys) == len(set(keys)) and program_key(task.module) not in keys
    assert [candidate.turn for candidate in first] == [*range(len(first))]
    assert {candidate.neighbour_kernel for candidate in first} == {SOURCE}
    assert [candidate.key for candidate in drawn(task, host_target())] == keys
    rest = drawn(task, host_target(), first[:4])
    assert [candidate.key for candidate in rest] == keys[4:]
    assert rest[0].turn == 4  # after what was transferred


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("reduce", {"m": 60, "n": 90, "op": "sum", "axis": 1}),
        ("softmax", {"m": 20, "n": 50}),
        ("elementwise", {"m": 40, "n": 60, "chain": "bias_gelu"}),
    ],
)
def test_they_compute_what_the_task_does(kind: str, params: dict[str, Any]) -> None:
    task = TvmTask(kind, Workload(kind, params).build())
    with BenchServer([task.module], host_target(available_threads())) as server:
        server.baseline(0)
        outcomes = server.measure(0, [candidate.program for candidate in drawn(task, host_target())][:4])
    assert {outcome.status for outcome in outcomes} == {"ok"}


def test_of_a_task_that_the_rules_fail_on_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("InternalError: no rule")

    monkeypatch.setattr(module, "Space", fails)
    assert (
        drawn(TvmTask("product", Workload("matmul", {"m": 8, "n": 8, "k": 8}).build()), host_target()) == []
    )
