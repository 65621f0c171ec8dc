"""DaCe's nodes of BLAS and LAPACK, by the OpenBLAS of scipy-openblas32."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from gnnperf.backends.cpp.baselines import build_baseline
from gnnperf.backends.cpp.output import write_output
from gnnperf.frontends.dace import DaceKernel, load_kernel
from gnnperf.frontends.dace.codegen import WITH_BLAS
from gnnperf.frontends.dace.openblas import with_openblas
from gnnperf.measure import Compiler, Runner

HEADER = "import dace\nimport numpy as np\nN, M = dace.symbol('N'), dace.symbol('M')\n@dace.program\n"
KERNELS = {
    "product": "def kernel(A: dace.float64[N, M], B: dace.float64[M, N], C: dace.float64[N, N]):\n"
    "    C[:] = A @ B",
    "transposed": "def kernel(A: dace.float32[M, N], B: dace.float32[N, M], C: dace.float32[N, N]):\n"
    "    C[:] = np.transpose(A) @ np.transpose(B)",
    "vectors": "def kernel(A: dace.float64[N, M], x: dace.float64[M], y: dace.float64[M]):\n"
    "    y[:] = (A @ x) @ A",
    "batch": "def kernel(A: dace.float32[3, N, M], B: dace.float32[3, M, N], C: dace.float32[3, N, N]):\n"
    "    C[:] = A @ B",
    "complex": "def kernel(A: dace.complex128[N, M], B: dace.complex128[M, N], C: dace.complex128[N, N]):\n"
    "    C[:] = A @ B",
    "complex vectors": "def kernel(A: dace.complex64[N, M], x: dace.complex64[M], y: dace.complex64[M]):\n"
    "    y[:] = (A @ x) @ A",
}
SIZES = {"N": 70, "M": 90}


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Compiler, Runner]]:
    with Compiler() as compiler, Runner(threads=2) as runner:
        yield compiler, runner


def loaded(folder: Path, text: str, sizes: Mapping[str, int] = SIZES, **options: object) -> DaceKernel:
    path = folder / "kernel.py"
    path.write_text(HEADER + text)
    sizes = {name: size for name, size in sizes.items() if f" {name}" in text or f"[{name}" in text}
    return load_kernel(f"{path}:kernel", sizes, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", KERNELS)
def test_products_of_dace_are_calls_that_compute_what_loops_do(
    name: str, tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    compiler, runner = tools
    kernel = loaded(tmp_path, KERNELS[name])
    source = kernel.optimised_sources()[WITH_BLAS]
    assert re.search(r" gp_cblas_gem[mv]<.*>\(C", source.text)
    found = runner.reference(compiler.build(source), kernel.data, kernel.outputs, kernel.inouts)
    plain = compiler.build(kernel.plain_source())
    reference = runner.reference(plain, kernel.data, kernel.outputs, kernel.inouts)
    for output, expected in reference.items():
        np.testing.assert_allclose(found[output], expected, rtol=1e-4)


def test_the_faster_of_loops_and_calls_is_the_baseline(
    tmp_path: Path, tools: tuple[Compiler, Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = loaded(tmp_path, KERNELS["product"])
    for times, name, reason in (
        ({"dace-auto": 3.0, WITH_BLAS: 2.0}, WITH_BLAS, "dace-auto takes 1.5 times as long"),
        ({"dace-auto": 2.0, WITH_BLAS: 5.0}, "dace-auto", f"{WITH_BLAS} takes 2.5 times as long"),
    ):
        monkeypatch.setattr("gnnperf.backends.cpp.baselines._times_s", lambda *_, t=times: t)
        baseline = build_baseline(kernel, "auto", *tools)
        assert (baseline.name, baseline.reason) == (name, reason)


def test_large_scratch_of_a_node_is_freed_or_allocated_once(tmp_path: Path) -> None:
    """DaCe takes it for small, puts it on the heap where it is not, and never frees it."""
    solver = "def kernel(A: dace.float64[N, N], B: dace.float64[N, N], C: dace.float64[N, N]):\n"
    kernel = loaded(tmp_path, solver + "    C[:] = np.linalg.solve(A, B)", {"N": 200})
    plain = kernel.plain_source().text
    assert plain.count("= new double") == plain.count("delete[]") == 2
    (optimised,) = kernel.optimised_sources().values()
    made = [line.strip() for line in optimised.text.splitlines() if "= new double" in line]
    assert len(made) == 2 and all(line.startswith("__state->") for line in made)


def test_programs_without_products_have_one_form(tmp_path: Path) -> None:
    text = "def kernel(A: dace.float64[N, M], C: dace.float64[N, M]):\n    C[:] = A + 1.0"
    assert [*loaded(tmp_path, text).optimised_sources()] == ["dace-auto"]


RUN = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import run

rng = np.random.default_rng(0)
for _ in range(2):
    A = rng.random((70, 70)) + 70 * np.eye(70)
    C = np.empty((70, 70))
    run.call(A=A, C=C)
    np.testing.assert_allclose(C, np.linalg.inv(A) + 1.0, rtol=1e-8, atol=1e-12)
opened = {line.split()[-1] for line in open("/proc/self/maps") if "libscipy_openblas.so" in line}
assert opened == {sys.argv[1] + "/libscipy_openblas.so"}, opened
"""


def test_lapack_works_out_of_the_box_and_in_what_is_written(
    tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    text = "def kernel(A: dace.float64[N, N], C: dace.float64[N, N]):\n    C[:] = np.linalg.inv(A) + 1.0"
    matrix = np.random.default_rng(1).random((70, 70)) + 70 * np.eye(70)
    kernel = loaded(tmp_path, text, inputs={"A": matrix})
    baseline = build_baseline(kernel, "auto", *tools)
    np.testing.assert_allclose(
        baseline.problem.reference["C"], np.linalg.inv(matrix) + 1.0, rtol=1e-8, atol=1e-12
    )
    folder = tmp_path / "out"
    folder.mkdir()
    write_output(folder, kernel, kernel.kept(baseline.name), "{}", tools[0])
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", RUN, str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("dtype", "size", "tolerance"),
    [("float64", 70, 1e-8), ("float64", 3, 1e-8), ("float32", 150, 1e-3), ("complex128", 150, 1e-8)],
)
def test_systems_with_one_right_side_are_solved_as_those_with_several(
    dtype: str, size: int, tolerance: float, tmp_path: Path, tools: tuple[Compiler, Runner]
) -> None:
    """Rows change places: the matrix has no large diagonal."""
    text = f"""def kernel(A: dace.{dtype}[N, N], b: dace.{dtype}[N], B: dace.{dtype}[N, M],
                        x: dace.{dtype}[N], X: dace.{dtype}[N, M], Y: dace.{dtype}[N, N]):
        x[:] = np.linalg.solve(A, b)
        X[:] = np.linalg.solve(A, B)
        Y[:] = np.linalg.inv(A)
    """
    chance = np.random.default_rng(1)
    matrix = chance.random((size, size)).astype(dtype)
    if dtype == "complex128":
        matrix += 1j * chance.random((size, size))
    kernel = loaded(tmp_path, text, sizes={"N": size, "M": 90}, inputs={"A": matrix})
    found = build_baseline(kernel, "auto", *tools).problem.reference
    assert np.abs(np.linalg.inv(matrix) - found["Y"]).max() < tolerance * np.abs(found["Y"]).max()
    for unknown, side in (("x", "b"), ("X", "B")):
        expected = np.linalg.solve(matrix, kernel.data[side])
        assert np.abs(expected - found[unknown]).max() < tolerance * np.abs(expected).max()


def test_code_without_blas_stays_as_it_is() -> None:
    assert with_openblas("int main() {}") == "int main() {}"
