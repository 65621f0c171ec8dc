"""A kernel whose products became calls of BLAS: as a whole, saved, and without the library."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnnperf.backends.cpp.output import write_output
from gnnperf.backends.folder import LIBRARY, REPORT, SCRIPT
from gnnperf.frontends.dace import DaceKernel, DaceProgram, load_kernel, splice
from gnnperf.frontends.dace.loader import SDFG
from gnnperf.measure import Compiler, Limits, Runner, Source
from gnnperf.schedules.recipes import DEFAULTS, CppFunction, apply, emit
from gnnperf.schedules.recipes.library_calls import openblas

KERNEL = """
import dace
import numpy as np

M, N = dace.symbol("M"), dace.symbol("N")

@dace.program
def layers(weights: dace.float32[3, N, N], x: dace.float32[M, N]):
    for t in range(3):
        x[:] = np.maximum(x @ weights[t], 0)
"""

SIZES = {"M": 90, "N": 80}

PREPARED = """
import sys
import numpy as np

rng = np.random.default_rng(0)
weights = (rng.random((3, 80, 80)) - 0.5).astype(np.float32)
x = rng.random((90, 80)).astype(np.float32)
expected = x
for t in range(3):
    expected = np.maximum(expected @ weights[t], 0)
"""

RUN = f"""{PREPARED}
sys.path.insert(0, sys.argv[1])
import run

run.call(weights=weights, x=x)
np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5)
opened = [line.split()[-1] for line in open("/proc/self/maps") if "libscipy_openblas.so" in line]
assert set(opened) == {{sys.argv[1] + "/libscipy_openblas.so"}}, opened
"""

PLAIN_DACE = f"""{PREPARED}
import dace

dace.SDFG.from_file(sys.argv[1]).compile()(weights=weights, x=x)
np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-5)
"""


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Compiler, Runner]]:
    with Compiler() as compiler, Runner(threads=2) as runner:
        yield compiler, runner


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> DaceKernel:
    path = tmp_path_factory.mktemp("kernel") / "kernel.py"
    path.write_text(KERNEL)
    return load_kernel(f"{path}:layers", SIZES)


@pytest.fixture(scope="module")
def functions(kernel: DaceKernel) -> dict[int, CppFunction]:
    (recipe,) = (r for r in DEFAULTS if r.library)
    return {u.index: emit(apply(recipe, u.nest), f"unit_{u.index}") for u in kernel.units}


@pytest.fixture(scope="module")
def tuned(kernel: DaceKernel, functions: dict[int, CppFunction]) -> DaceProgram:
    assert all("gp_gemm<float>(" in f.source for f in functions.values())
    return DaceProgram(splice(kernel, functions))


def test_the_whole_kernel_is_right_beside_its_baseline(
    kernel: DaceKernel, tuned: DaceProgram, tools: tuple[Compiler, Runner]
) -> None:
    """Both on threads of one process, which was forked for them."""
    compiler, runner = tools
    plain, called = compiler.build(kernel.plain_source()), compiler.build(tuned.source("called"))
    reference = runner.reference(plain, kernel.data, kernel.outputs, kernel.inouts)
    measured = runner.measure(
        plain, called, kernel.data, kernel.outputs, kernel.inouts, reference,
        Limits(budget_s=0.05), reduction_length=240,
    )  # fmt: skip
    assert measured.status == "ok", measured.detail


def test_what_is_written_brings_the_library_with_it(
    kernel: DaceKernel, tuned: DaceProgram, tools: tuple[Compiler, Runner], tmp_path: Path
) -> None:
    write_output(tmp_path, kernel, tuned, "{}", tools[0])
    names = [SDFG, LIBRARY, SCRIPT, REPORT, "libscipy_openblas.so"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    command = [sys.executable, "-I", "-W", "error", "-c", RUN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_saved_kernel_compiles_with_plain_dace(tuned: DaceProgram, tmp_path: Path) -> None:
    tuned.save(tmp_path)
    command = [sys.executable, "-c", PLAIN_DACE, SDFG]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_library_is_named(
    kernel: DaceKernel, functions: dict[int, CppFunction], tools: tuple[Compiler, Runner]
) -> None:
    """As where a saved kernel is compiled on a machine that has no OpenBLAS."""
    compiler, runner = tools
    (unit,) = kernel.units
    function = functions[unit.index]
    elsewhere = function.source.replace(str(openblas()), "/nowhere/libgone.so")
    assert elsewhere != function.source
    library = compiler.build(Source.of(replace(function, source=elsewhere)))
    data = {n: np.zeros(unit.nest.buffers[n].shape, "float32") for n in function.buffers} | {"t": np.int64(0)}
    measured = runner.measure(None, library, data, unit.outputs, unit.inouts)
    assert measured.status == "run_error"
    assert "no OpenBLAS at /nowhere/libgone.so: pip install scipy-openblas32" in measured.detail
