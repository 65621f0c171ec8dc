"""Exported programs as wholes: what PyTorch makes of them, schedules of their tasks, and giving these up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.program_output import write_program
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.backends.tvm.whole_kernel import BASELINE, exported_problem, measured_whole, timed_whole
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.relax_programs import exported_program, plain_program, torch_program
from gnnperf.frontends.tvm.spaces import DesignSpace
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.frontends.tvm.whole_program import WholeProgram
from gnnperf.measure import Measurement
from gnnperf.measure.interleaved import Pace
from gnnperf.measure.supervisor import Failed
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.report import comparison

PACE = Pace(6, 0.01)


class Net(torch.nn.Module):
    """A product that is used twice, and rows that sum to one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(24, 24) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return torch.softmax(x, dim=-1)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("program") / "net.pt2"
    torch.export.save(torch.export.export(Net().eval(), (torch.randn(8, 24),)), path)
    return path


@pytest.fixture(scope="module")
def program(path: Path) -> WholeProgram:
    import_tvm()
    return exported_program(path, host_target())


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    set_runtime_threads()


@pytest.fixture
def server(program: WholeProgram, path: Path) -> Iterator[BenchServer]:
    programs = [program, plain_program(torch.export.load(path), program.target)]
    modules, limits = [task.module for task in program.tasks], BenchLimits(sample_s=0.001)
    with BenchServer(modules, program.target, limits, programs=programs) as server:
        yield server


def layer(program: WholeProgram) -> Any:
    return next(task for task in program.tasks if task.calls == 2)


def scheduled(program: WholeProgram) -> Any:
    return next(DesignSpace(layer(program).module, program.target).sample(1, seed=1)).sch.mod


def wrong(program: WholeProgram) -> Any:
    """A function with the layer's arguments that adds where it multiplies."""
    import tvm
    from tvm import te

    x, w, b = (te.placeholder(shape, name=n) for n, shape in (("x", (8, 24)), ("w", (24, 24)), ("b", (24,))))
    function = te.create_prim_func([x, w, b, te.compute((8, 24), lambda i, j: x[i, j] + w[j, j] + b[j])])
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def test_functions_know_their_tasks_and_are_replaced(program: WholeProgram) -> None:
    assert sorted(task.calls for task in program.tasks) == [1, 2]
    assert set(program.sites.values()) == {task.name for task in program.tasks}
    module = program.linked({layer(program).name: scheduled(program)})
    assert "T.parallel" in module.script() and "T.parallel" not in program.module.script()


def test_programs_are_verified_against_pytorch_and_take_turns(
    program: WholeProgram, server: BenchServer, path: Path
) -> None:
    problem = exported_problem(path, program.tasks)
    name = layer(program).name
    players = {
        "fused": (0, {}), "ours": (0, {name: scheduled(program)}), "wrong": (0, {name: wrong(program)}),
        "plain": (1, {}),
    }  # fmt: skip

    def absent(_: Any) -> Any:
        raise Failed("not_applicable", "not here")

    found = timed_whole(server, players, problem, {"other": lambda _: lambda: 1e-3, "absent": absent}, PACE)
    assert {n: m.status for n, m in found.items()} == {
        "fused": "ok", "ours": "ok", "wrong": "wrong_result", "plain": "ok", "other": "ok",
        "absent": "not_applicable",
    }  # fmt: skip
    assert found["other"].runtime_s == 1e-3
    assert all(
        0 < (found[n].runtime_s or 0) < 1 and found[n].samples >= 3 for n in ("fused", "ours", "plain")
    )
    reference = {name: np.zeros_like(array) for name, array in problem.reference.items()}
    other = timed_whole(server, {"fused": (0, {})}, replace(problem, reference=reference), {}, PACE)
    assert other["fused"].status == "wrong_result"


def query_with(program: WholeProgram, module: Any) -> Query:
    """A task that was won by a module."""

    class Candidate:
        program = module
        schedule = None

    query = Query(layer(program), layer(program).graph)
    query.winner = Candidate(), Measurement("ok")  # type: ignore[assignment]
    return query


def test_a_program_that_is_wrong_with_its_winners_goes_without(
    program: WholeProgram, server: BenchServer, path: Path
) -> None:
    query = query_with(program, wrong(program))
    others = {"other": lambda _: lambda: 1.0}
    found = measured_whole(exported_problem(path, program.tasks), [query], server, others, PACE)
    assert query.winner is None and "wrong_result" in query.reason
    assert found.kept_baseline and found.tuned == found.baseline and "the baseline is kept" in found.note
    beside = comparison("other", found.competitors["other"], found.tuned)
    assert beside.speedup == pytest.approx(1 / found.baseline.runtime_s)


def test_a_program_that_is_no_faster_with_its_winners_goes_without(
    program: WholeProgram, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timed(*_: Any) -> dict[str, Measurement]:
        return {name: Measurement.from_samples(runs) for name, runs in found.items()}

    monkeypatch.setattr("gnnperf.backends.tvm.whole_kernel.timed_whole", timed)
    server: Any = None
    found = {BASELINE: [1.0, 1.1, 1.2] * 3, "tuned": [1.0, 1.1, 1.2] * 3}
    query = query_with(program, wrong(program))
    assert "not faster" in measured_whole(exported_problem(path, program.tasks), [query], server, {}).note
    assert query.winner is None
    found["tuned"] = [0.5] * 9
    query = query_with(program, wrong(program))
    whole = measured_whole(exported_problem(path, program.tasks), [query], server, {})
    assert query.winner is not None and whole.note == "" and whole.speedup == pytest.approx(2.2)


def test_what_pytorch_cannot_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"PyTorch cannot run nothing\.pt2"):
        exported_problem(tmp_path / "nothing.pt2", [])


class Half(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(6, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.weight * x).float()


def test_weights_of_bfloat16_are_written_and_read(tmp_path: Path) -> None:
    exported = torch.export.export(Half(), (torch.ones(6, dtype=torch.bfloat16),))
    write_program(tmp_path, "half", torch_program(exported, "half", host_target()), {})
    command = "import model, numpy; print(model.model(numpy.ones(6, 'bfloat16'))[0].tolist())"
    done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]\n", done.stderr
