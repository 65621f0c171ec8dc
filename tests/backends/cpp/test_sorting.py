"""What is put in order is what Python has in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gnnperf.errors import InputError
from gnnperf.frontends.dace import load_kernel
from gnnperf.measure import Compiler, Runner

PROGRAM = """
import dace
import numpy as np

N, M, f4, f8, i8 = dace.symbol("N"), dace.symbol("M"), dace.float32, dace.float64, dace.int64

@dace.program
def ordered(
    x: f8[N], n: dace.int32[N], A: f4[N, M], B: f8[N, M], y: f8[N], m: dace.int32[N], order: i8[N],
    ranks: f8[N], C: f4[N, M], D: f8[N, M], flat: f8[N * M], last: f8[3]
):
    y[:] = np.sort(x)[::-1]
    m[:] = np.sort(n)
    order[:] = np.argsort(x)
    ranks[:] = np.argsort(x.argsort()) / (N - 1)
    C[:] = np.sort(A)
    t = np.copy(B)
    t.sort(axis=0)
    D[:] = t
    flat[:] = np.sort(B, axis=None)
    last[:] = np.sort(x)[-3:]

@dace.program
def shares(
    x: f8[N], n: dace.int32[N], A: f4[N, M], B: f8[N, M], y: f8[N], q: f8[3], columns: f8[M], rows: f4[N],
    C: f4[N, M], both: f8[2, N], z: f8[N]
):
    y[:] = (x - np.median(x)) / np.median(np.abs(x - np.median(x)))
    q[:] = np.percentile(x, [5, 50.0, 99])
    columns[:] = np.median(B, axis=0) + np.median(n)
    rows[:] = np.quantile(A, 0.3, axis=1)
    C[:] = A - np.median(A, axis=1, keepdims=True)
    both[:] = np.percentile(B, [25, 75], axis=1)
    for i in range(N):
        z[i] = np.median(B[i])

@dace.program
def of_an_array(x: f8[N], q: f8[M], y: f8[M]):
    y[:] = np.quantile(x, q)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize("name", ["ordered", "shares"])
@pytest.mark.parametrize("sizes", [{"N": 23, "M": 6}, {"N": 8, "M": 5}])
def test_numbers_are_in_the_order_of_python(name: str, sizes: dict[str, int], program: Path) -> None:
    kernel = load_kernel(f"{program}:{name}", sizes)
    with Compiler() as compiler, Runner(threads=2) as runner:
        library = compiler.build(kernel.plain_source())
        found = runner.reference(library, kernel.data, kernel.outputs, kernel.inouts)
    outside: dict[str, object] = {}
    exec(PROGRAM.replace("@dace.program", ""), outside)
    outside.update(sizes)
    arguments = {n: np.array(v) for n, v in kernel.data.items()}
    outside[name](**{n: v for n, v in arguments.items() if n not in sizes})  # type: ignore[operator]
    for output in kernel.outputs:
        np.testing.assert_allclose(found[output], arguments[output], rtol=1e-5, atol=1e-6, err_msg=output)


def test_numbers_that_have_no_order_are_put_somewhere(program: Path) -> None:
    x = np.random.default_rng(0).random(2000)
    x[::3] = np.nan
    kernel = load_kernel(f"{program}:ordered", {"N": 2000, "M": 5}, inputs={"x": x})
    with Compiler() as compiler, Runner(threads=2) as runner:
        found = runner.reference(
            compiler.build(kernel.plain_source()), kernel.data, kernel.outputs, kernel.inouts
        )
    assert sorted(found["order"]) == [*range(2000)]


def test_shares_are_numbers_in_the_text(program: Path) -> None:
    with pytest.raises(
        InputError, match=r"np\.quantile, np\.percentile: of shares that are numbers in the text"
    ):
        load_kernel(f"{program}:of_an_array", {"N": 8, "M": 5})
