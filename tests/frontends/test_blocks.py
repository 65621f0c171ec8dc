"""Long sums of plain programs run in blocks: the same results, without atomic instructions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from frontends.kit import KERNELS, assert_same, build, load, reference_source, run

from gnnperf.frontends.dace import blocks, finish, load_kernel
from gnnperf.frontends.dace.codegen import plain_source
from gnnperf.measure import Compiler, Runner
from gnnperf.schedules.recipes import library_recipes
from gnnperf.shipped import shipped


@pytest.fixture(scope="module")
def tools() -> Iterator[tuple[Compiler, Runner]]:
    with Compiler() as compiler, Runner(threads=2) as runner:
        yield compiler, runner


@pytest.mark.parametrize(("name", "blocked"), [("gemm", 1), ("gemm_map", 1), ("batched", 1), ("atax", 0)])
def test_products_in_blocks_are_the_same(
    name: str, blocked: int, tools: tuple[Compiler, Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load(name)
    whole = reference_source(kernel)
    assert plain_source(kernel.simplified, f"{name}_reference").text == whole.text, "it is small"
    monkeypatch.setattr(blocks, "LARGE", 1)
    monkeypatch.setattr(blocks, "BLOCK", 3)
    source = plain_source(kernel.simplified, f"{name}_blocks")
    assert source.text.count("_block = 0;") == 2 * blocked
    if blocked:
        assert "reduce_atomic" not in source.text
        assert "reduce_atomic" in whole.text
    libraries = build(tools[0], [whole, source])
    expected, found = (run(tools[1], kernel, library) for library in libraries)
    assert_same(expected, found, name)


@pytest.mark.parametrize("name", ["cholesky_right", "cholesky_apart", "lu_left"])
def test_a_factorisation_is_one_unit_however_large_it_is(name: str) -> None:
    kernel = load_kernel(f"{shipped('configs/corpus')}/kernels/factorisations.py:{name}", {"N": 900})
    assert finish.SMALL_ITERATION < 900 * 900 / 6
    assert [len(unit.nest.body) for unit in kernel.units] == [1]
    assert len(library_recipes(kernel.units[0].nest)) == 1


def test_a_solve_that_subtracts_rows_in_place_is_a_call() -> None:
    kernel = load_kernel(f"{KERNELS}:rows_solved_in_place", {"N": 200, "M": 100})
    (unit,) = kernel.units
    assert [recipe.library for recipe in library_recipes(unit.nest)] == ["blas"]
