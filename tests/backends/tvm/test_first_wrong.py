"""Which part of a program is translated wrongly?"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gnnperf.backends.tvm import first_wrong, whole_kernel
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm import relax_programs
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import host_target


class Program(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x) + 1.0
        last = y[:, -1]
        return torch.softmax(last, dim=-1) * 3.0


@pytest.fixture
def program() -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    return torch.export.export(Program(), (torch.randn(3, 4, 5),))


def test_nothing_of_a_right_program_is_named(program: torch.export.ExportedProgram) -> None:
    assert first_wrong.is_right(program)
    assert first_wrong.first_wrong(program, lambda _: True) is None


def test_the_first_part_is_found_by_halving(
    program: torch.export.ExportedProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relax_programs, "counted_from_start", lambda module: module)
    assert not first_wrong.is_right(program)
    node = first_wrong.first_wrong(program, first_wrong.is_right)
    assert first_wrong.described(node) == "aten.select.int (last = y[:, -1])"


def test_a_wrong_translation_is_refused_with_its_part(
    program: torch.export.ExportedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_tvm()
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    right = relax_programs.exported_program(path, host_target())
    problem = whole_kernel.exported_problem(path, right.tasks)
    with BenchServer([], right.target, programs=[right]) as server:
        whole_kernel.checked_translation(path, problem, server)
    monkeypatch.setattr(relax_programs, "counted_from_start", lambda module: module)
    wrong = relax_programs.exported_program(path, host_target())
    monkeypatch.setattr(whole_kernel, "wrong_part", lambda _: "aten.select.int (x[-1])")
    with (
        BenchServer([], wrong.target, programs=[wrong]) as server,
        pytest.raises(MeasureError, match=r"TVM translates net\.pt2 wrongly.*first part.*aten\.select\.int"),
    ):
        whole_kernel.checked_translation(path, problem, server)


def test_a_process_looks_for_it(
    program: torch.export.ExportedProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("copy.py").write_text("open('run', 'w')")  # of the user's, not Python's
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    assert first_wrong.wrong_part(path) is None  # there is none
    assert first_wrong.wrong_part(tmp_path / "none.pt2") is None
    assert not Path("run").exists()
