"""Calls of libraries as they are measured, put into whole programs, and written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.output import write_output
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.program import TvmProgram
from gnnperf.frontends.tvm.relax_programs import exported_program
from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
from gnnperf.frontends.tvm.vendor import library
from gnnperf.retrieval.traces import calls as retrieved_calls
from gnnperf.retrieval.traces.calls import CallCandidate, calls_for
from gnnperf.schedules.calls import LibraryCall

SIZE = 12


class Net(torch.nn.Module):
    """A convolution, and a product of what it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(16, 24, 3, padding=1)
        self.layer = torch.nn.Linear(24 * SIZE * SIZE, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.relu(self.convolution(x)).flatten(1))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    set_runtime_threads()


@pytest.fixture(scope="module")
def example() -> tuple[Any, torch.Tensor]:
    torch.manual_seed(0)
    return Net().eval(), torch.randn(8, 16, SIZE, SIZE)


@pytest.fixture(scope="module")
def program(example: Any, tmp_path_factory: pytest.TempPathFactory) -> TvmProgram:
    net, x = example
    path = tmp_path_factory.mktemp("program") / "net.pt2"
    torch.export.save(torch.export.export(net, (x,)), path)
    import_tvm()
    target = host_target(2)
    whole = exported_program(path, target)
    return TvmProgram("net", whole.tasks, target, whole, path)


@pytest.fixture(scope="module")
def calls(program: TvmProgram) -> dict[str, CallCandidate]:
    found = {task.name: call for task in program.tasks for call in calls_for(task, program.target)}
    assert len(found) == 2
    return found


def test_what_calls_the_library_is_compiled_before_processes_that_may_not_write(
    program: TvmProgram, calls: dict[str, CallCandidate], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine where it never was, for products as for convolutions."""
    anew = library.compiled_file.__wrapped__
    for module in (library, retrieved_calls):
        monkeypatch.setattr(module, "compiled_file", anew)
    for number, call in enumerate(calls.values()):
        cache = tmp_path / str(number)
        monkeypatch.setenv("GNNPERF_CACHE", str(cache))
        assert calls_for(call.task, program.target)
        assert [*cache.rglob("libgnnperf_onednn.so")]


def test_they_are_verified_and_timed_like_any_candidate(
    program: TvmProgram, calls: dict[str, CallCandidate]
) -> None:
    modules = [task.module for task in program.tasks if task.name in calls]
    with BenchServer(modules, program.target, BenchLimits(sample_s=0.001)) as server:
        for number, call in enumerate(calls.values()):
            assert [outcome.status for outcome in server.measure(number, [call.program])] == ["ok"]


def test_a_folder_runs_without_gnnperf(
    program: TvmProgram, calls: dict[str, CallCandidate], example: Any, tmp_path: Path
) -> None:
    trials = [SimpleNamespace(task=c.task, winner=(c, None)) for c in calls.values()]
    write_output(tmp_path, program, trials, "{}")  # type: ignore[arg-type]
    assert {"libdnnl.so.3", "libgnnperf_onednn.so"} <= {file.name for file in tmp_path.iterdir()}
    net, x = example
    np.save(tmp_path / "x.npy", x.numpy())
    code = (
        "import os, sys, runpy; sys.path.insert(0, '.'); sys.modules['gnnperf'] = None; import numpy as np; "
        "import model; np.save('y.npy', model.model(np.load('x.npy'))[0]); "
        "runpy.run_path('run.py', run_name='__main__'); os._exit(0)"  # TVM waits long for its threads' end
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with torch.no_grad():
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), net(x).numpy(), rtol=1e-4, atol=1e-4)


def test_they_come_first_unless_a_neighbour_was_faster_by_a_trace() -> None:
    from gnnperf.retrieval.traces.calls import beside

    def neighbour(**runtimes_s: float) -> Any:
        records = [
            SimpleNamespace(schedule_kind=kind, status="ok", runtime_s=s) for kind, s in runtimes_s.items()
        ]
        return SimpleNamespace(records=records)

    call: Any = LibraryCall("onednn", "m")
    assert beside([call], ["a", "b"], []) == [call, "a", "b"]
    assert beside([call], ["a", "b"], [neighbour(trace=1.0), neighbour(trace=1.0, call=2.0)]) == [
        "a",
        call,
        "b",
    ]
    assert beside([call], ["a", "b"], [neighbour(trace=2.0, call=1.0)]) == [call, "a", "b"]
