"""PyTorch beside tasks: what it has, what it has not, and what it does otherwise."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from gnnperf.backends.tvm.competitors import COMPILED, Torch, torch_program
from gnnperf.frontends.tvm import TvmTask, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.measure import Measurement, Timing
from gnnperf.measure.competitors import joined
from gnnperf.measure.supervisor import Failed
from gnnperf.retrieval.report import comparison

import_tvm()
from tvm import te, topi  # noqa: E402


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    set_runtime_threads()


def normalised(epsilon: float) -> TvmTask:
    data = te.placeholder((8, 16), name="data")
    gamma, beta = (te.placeholder((16,), name=name) for name in ("gamma", "beta"))
    out = topi.nn.layer_norm(data, gamma, beta, [1], epsilon)
    return tasks_of([data, gamma, beta, out], "rows")[0]


def test_what_pytorch_computes_is_verified() -> None:
    """Both are a layer norm, by their graphs; but PyTorch is called with the usual epsilon."""
    library = Torch(host_target())
    with joined([library], normalised(1e-5)) as (turns, absent):
        assert not absent and 0 < turns["torch"]() < 0.1
    with joined([library], normalised(0.5)) as (turns, absent):
        assert not turns and absent["torch"].status == "wrong_result"


def test_where_it_has_no_operator_that_is_said() -> None:
    a = te.placeholder((8, 16), name="a")
    (task,) = tasks_of([a, te.compute((8, 16), lambda i, j: te.sin(a[i, j]) + a[7 - i, j], name="b")], "odd")
    with joined([Torch(host_target())], task) as (turns, absent):
        assert not turns and absent["torch"].status == "not_applicable"
        assert "no operator" in absent["torch"].detail


def test_an_exported_program_runs_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(torch.nn.Linear(8, 16).eval(), (torch.ones(4, 8),)), path)
    with ExitStack() as stack:
        assert 0 < torch_program(path, stack)() < 0.1
        assert 0 < torch_program(path, stack, COMPILED)() < 0.1
    with ExitStack() as stack, pytest.raises(Failed) as failed:
        torch_program(tmp_path / "nothing.pt2", stack)
    assert failed.value.status == "run_error"


def test_a_comparison_says_who_is_faster() -> None:
    found = comparison("torch", Measurement.from_samples([2e-3] * 6), Timing(1e-3, (0.5e-3, 2e-3)))
    assert found.speedup == pytest.approx(2) and found.speedup_interval == pytest.approx((1, 4))
    assert comparison("torch", Measurement("run_error", detail="why"), None).detail == "why"
