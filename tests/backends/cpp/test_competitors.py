"""What else one would have called, beside what is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gnnperf.backends.cpp.competitors import competitors_of
from gnnperf.backends.cpp.executor import CppExecutor
from gnnperf.errors import InputError
from gnnperf.frontends.dace import DaceKernel, load_kernel
from gnnperf.measure import Measurement
from gnnperf.measure.competitors import measure_side_by_side
from gnnperf.measure.problem import Problem

FILE = """
import dace
import numpy as np

N = dace.symbol("N")

@dace.program
def kernel(A: dace.float64[N], scale: dace.float64, C: dace.float64[N]):
    for i in dace.map[0:N]:
        C[i] = A[i] * scale
    return np.sum(C)

def mine(A, scale, C):
    C[:] = A * scale
    return C.sum()

def wrong(A, C):
    C[:] = A

def other(A, B):
    pass

def counted(A, scale, C, N, more=1):
    assert (N, more) == (40, 1)
    np.multiply(A, scale, out=C)
    return C.sum()
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernel") / "kernel.py"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def kernel(path: Path) -> DaceKernel:
    return load_kernel(f"{path}:kernel", {"N": 40, "scale": 2.0})


def test_functions_are_verified_and_those_that_differ_say_how(kernel: DaceKernel, path: Path) -> None:
    names = ["numpy", *(f"{path}:{name}" for name in ("mine", "wrong", "other", "counted"))]
    found = beside(kernel, names)
    status = {name.rpartition(":")[2]: m.status for name, m in found.items()}
    assert status == {
        "numpy": "ok", "mine": "ok", "wrong": "wrong_result", "other": "run_error", "counted": "ok"
    }  # fmt: skip
    assert all((m.speedup or 0) > 0 for m in found.values() if m.status == "ok"), "of what is kept"
    assert "C: 40 of 40 elements differ" in found[f"{path}:wrong"].detail
    assert "its parameter B is none of the kernel's arguments" in found[f"{path}:other"].detail


def beside(kernel: DaceKernel, names: list[str]) -> dict[str, Measurement]:
    executor = CppExecutor(kernel, "simplify", competitors=names)
    try:
        executor.prepare(True)
        executor.whole()
        whole = executor.assemble([])
        assert whole.kept_baseline
        return dict(whole.competitors)
    finally:
        executor.close()


def test_names_that_mean_nothing_are_refused(kernel: DaceKernel, path: Path) -> None:
    for name, said in (
        ("cublas", "expected numpy, numba, torch, torch-compile or file.py:function, got 'cublas'"),
        (f"{path}x:mine", "there is no file"),
        (f"{path}:not a name", "expected path/to/file.py:name"),
    ):
        with pytest.raises(InputError, match=said):
            competitors_of(kernel, [name])


def test_a_function_in_numba_has_the_threads_to_itself(kernel: DaceKernel, tmp_path: Path) -> None:
    """A BLAS of several threads would compete with Numba's."""
    for text, package in (
        ("from numba import njit", "numba"),
        ("import numba as nb", "numba"),
        ("import numpy  # no numba", "numpy"),
        ("# -*- coding: latin-1 -*-\n# Größe\nimport numba", "numba"),
    ):
        (file := tmp_path / "own.py").write_text(f"{text}\n\ndef mine(): ...\n", encoding="latin-1")
        (found,) = competitors_of(kernel, [f"{file}:mine"]).values()
        assert (found.package, found.compiled) == (package, "")


def test_a_program_without_a_function_of_its_own_takes_the_user_s(kernel: DaceKernel, path: Path) -> None:
    anonymous = load_kernel(kernel.parsed, {"N": 40, "scale": 2.0})
    with pytest.raises(InputError, match=r"--beside numpy: expected a @dace\.program in a file"):
        competitors_of(anonymous, ["numpy"])
    assert [*competitors_of(anonymous, [f"{path}:mine"])] == [f"{path}:mine"]


def test_a_program_as_an_object_knows_its_file() -> None:
    from frontends.kernels import relu

    found = load_kernel(relu, {"N": 4, "M": 5}).function
    assert found is not None and (found[0].name, found[1]) == ("kernels.py", "relu")


def test_torch_runs_what_it_can(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("import torch\n\n\ndef f(A, C):\n    torch.mul(A, 2.0, out=C)\n")
    inputs = {"A": np.arange(5.0), "C": np.zeros(5)}
    contender = competitors_of(load_kernel(_doubled(tmp_path), {"N": 5}), ["torch"])["torch"]
    from dataclasses import replace

    from gnnperf.measure.competitors import Effort

    problem = Problem(inputs, ["C"], {"C": 2.0 * inputs["A"]})
    effort = Effort(processes=1, rounds=2, budget_s=0.0, warm_up_s=0.0, timed_s=0.0)
    (found,) = measure_side_by_side(
        {"torch": replace(contender, path=path, name="f")}, problem, effort
    ).values()
    assert found.status == "ok", found.detail


def _doubled(folder: Path) -> str:
    path = folder / "doubled.py"
    path.write_text(
        "import dace\nN = dace.symbol('N')\n@dace.program\n"
        "def doubled(A: dace.float64[N], C: dace.float64[N]):\n    C[:] = 2.0 * A\n"
    )
    return f"{path}:doubled"
