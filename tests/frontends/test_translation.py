"""Kernels of many kinds: the nests compute what DaCe's own code of the untouched program computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from frontends.kernels import CASES
from frontends.kit import assert_same, build, interpret_program, load, reference_source, run

from gnnperf.errors import GnnperfError
from gnnperf.frontends.dace import DaceKernel
from gnnperf.measure import Compiler, Runner
from gnnperf.nests.analysis import band
from gnnperf.nests.ir import Loop, Statement, walk

IN_LOOPS = ("top_branch", "early_exit")
"""Kernels with control flow around their units: see test_units.py."""
PARALLEL = (
    "spmv", "spmv_map", "maxpool", "conv2d_bias", "three_ways", "data_loop", "rows", "threshold", "gemm",
    "windowed_products", "symmetric_fill", "mirrored_gram",
)  # fmt: skip
RECURRENT = ("trsv", "cholesky", "cumulative", "carried", "seidel_2d", "scatter", "jacobi_1d", "symmetrised")
STRAIGHT = [
    name if name in PARALLEL + RECURRENT else pytest.param(name, marks=pytest.mark.slow)
    for name in CASES
    if name not in IN_LOOPS
]


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest) -> dict[str, DaceKernel | GnnperfError]:
    """Those that the chosen tests of this file need."""
    tests = [item for item in request.session.items if item.path == request.path]
    named = {item.callspec.params.get("name") for item in tests if hasattr(item, "callspec")}
    loaded: dict[str, DaceKernel | GnnperfError] = {}
    for name in [name for name in CASES if name in named | set(PARALLEL)]:
        try:
            loaded[name] = load(name)
        except GnnperfError as error:  # fails the kernel's own test, not all of them
            loaded[name] = error
    return loaded


@pytest.fixture(scope="module")
def expected(kernels: dict[str, DaceKernel | GnnperfError]) -> Iterator[dict[str, Any]]:
    """Outputs of DaCe's code of every kernel."""
    good = {n: k for n, k in kernels.items() if isinstance(k, DaceKernel)}
    with Compiler(batch=16) as compiler, Runner(threads=1) as runner:
        libraries = build(compiler, [reference_source(k) for k in good.values()])
        yield {n: run(runner, k, lib) for (n, k), lib in zip(good.items(), libraries, strict=True)}


@pytest.mark.parametrize("name", STRAIGHT)
def test_nests_compute_what_dace_computes(
    name: str, kernels: dict[str, DaceKernel | GnnperfError], expected: dict[str, Any]
) -> None:
    kernel = kernels[name]
    assert isinstance(kernel, DaceKernel), kernel
    assert kernel.units
    assert_same(expected[name], interpret_program(kernel), name)
    assert_same(
        expected[name], interpret_program(kernel, reverse=True), f"{name}, independent loops backwards"
    )


def nest_loops(name: str, kernels: dict[str, DaceKernel | GnnperfError]) -> list[Loop]:
    kernel = kernels[name]
    assert isinstance(kernel, DaceKernel)
    return [n for u in kernel.units for n in walk(u.nest.body) if isinstance(n, Loop)]


@pytest.mark.parametrize("name", PARALLEL)
def test_parallel_loops_are_found(name: str, kernels: dict[str, DaceKernel | GnnperfError]) -> None:
    assert all(loop.independent for loop in nest_loops(name, kernels))


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrences_stay_sequential(name: str, kernels: dict[str, DaceKernel | GnnperfError]) -> None:
    assert not all(loop.independent for loop in nest_loops(name, kernels))


@pytest.mark.parametrize(
    ("name", "independent"),
    [
        ("solved_in_place", [False, True]),
        ("best_splits", [False, False, True]),
        ("with_itself", [False, False]),
    ],
)
def test_what_is_summed_up_in_place_never_meets_itself(
    name: str, independent: list[bool], kernels: dict[str, DaceKernel | GnnperfError]
) -> None:
    """Elements before the one that is added to may be read in any order, the element itself may not."""
    assert [loop.independent for loop in nest_loops(name, kernels)] == independent


def test_csr_products_have_one_normal_form(kernels: dict[str, DaceKernel | GnnperfError]) -> None:
    """NumPy-style, with Python loops and with an explicit accumulator: a reduction into y[i]."""
    for name in ("spmv", "spmv_map"):
        kernel = kernels[name]
        assert isinstance(kernel, DaceKernel)
        (unit,) = kernel.units
        (statement,) = unit.nest.statements()
        assert statement.reduce == "add"
        assert statement.init is not None
        assert unit.nest.outputs == [statement.target.buffer]


def test_products_that_are_written_in_rows_have_their_loops_to_themselves(
    kernels: dict[str, DaceKernel | GnnperfError],
) -> None:
    kernel = kernels["symmetric_fill"]
    assert isinstance(kernel, DaceKernel)
    sums = [s for u in kernel.units for s in u.nest.statements() if s.reduce == "add"]
    assert [s.target.buffer for s in sums] == ["out"]
    assert any(band(n).is_perfect and band(n).statements == sums for u in kernel.units for n in u.nest.body)


def test_branches_on_counters_become_bounds(kernels: dict[str, DaceKernel | GnnperfError]) -> None:
    kernel = kernels["windowed_products"]
    assert isinstance(kernel, DaceKernel)
    (unit,) = kernel.units
    assert all(s.guard is None for s in unit.nest.statements())


def test_branches_become_selections(kernels: dict[str, DaceKernel | GnnperfError]) -> None:
    for name in ("threshold", "three_ways"):
        kernel = kernels[name]
        assert isinstance(kernel, DaceKernel)
        statements = [s for u in kernel.units for s in walk(u.nest.body) if isinstance(s, Statement)]
        assert all(s.guard is None for s in statements)
        assert len(statements) == 1
