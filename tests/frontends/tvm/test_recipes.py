"""Recipes carried over to TVM: what they compute, what they become, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import arguments, computed, solved
from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm import TvmTask, apply_recipe, scheduled_nest, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.measure.problem import Problem
from gnnperf.nests.analysis import extent
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.traces import program_key
from gnnperf.shipped import shipped_bundle
from gnnperf.store import Store

tvm = import_tvm()
from frontends.tvm import functions  # noqa: E402

from gnnperf.frontends.tvm.target import host_target, set_runtime_threads  # noqa: E402

KERNELS: dict[str, Callable[[], Any]] = {
    "matmul": functions.matmul,
    "matmul_odd": lambda: functions.matmul(50, 36, 29),
    "conv2d": functions.conv2d,
    "conv2d_padded": lambda: functions.conv2d(9, 5, 7, padding=1),
    "softmax": functions.softmax,
    "softmax_odd": lambda: functions.softmax(13, 37),
    "stencil": functions.stencil,
    "dense_chain": functions.dense_chain,
}
RECIPES = [
    Recipe(tile_q=24, register_q=6, tile_p=64, register_p=2, tile_r=32),
    Recipe(order="panel", tile_q=48, tile_p=64, tile_r=32, register_q=8, register_p=3, pack="qp"),
    Recipe(order="dot", vector="r", register_r=2, register_q=4),
    Recipe(order="row", register_p=2, fuse=1),
    Recipe(order="row", register_p=2, register_r=2, fuse=4),
    Recipe(order="stream", collapse=2, vector="none", accumulate=False),
    Recipe(order="rowtile", register_p=4, unroll=4, combine="inline"),
    Recipe(order="column", tile_q=16, register_q=2, tile_r=24, pack="qp", collapse=2),
]


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> None:
    set_runtime_threads(1)


@cache
def known(name: str) -> tuple[TvmTask, Problem]:
    (task,) = tasks_of(KERNELS[name](), name)
    kernel = build_kernel(task.module, host_target(1))
    return task, solved(task.module, kernel)


def fault(name: str, recipe: Recipe) -> str | None:
    """What is wrong with the results of a recipe; None where nothing is."""
    task, problem = known(name)
    kernel = build_kernel(apply_recipe(task, recipe).mod, host_target(1))
    return problem.verify(computed(kernel, arguments(problem)))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.id)
@pytest.mark.parametrize("name", ["matmul", "conv2d", "softmax", "stencil"])
def test_results_are_right(name: str, recipe: Recipe) -> None:
    if recipe.fuse and name == "conv2d":
        recipe = Recipe(order="tile2d", tile_P=4, tile_q=3)
    assert fault(name, recipe) is None


@pytest.mark.parametrize("recipe", RECIPES[:3], ids=lambda r: r.id)
@pytest.mark.parametrize("name", ["matmul_odd", "conv2d_padded", "softmax_odd", "dense_chain"])
def test_results_are_right_where_tiles_leave_something_over(name: str, recipe: Recipe) -> None:
    assert fault(name, recipe) is None


@cache
def stored_recipes() -> list[Recipe]:
    """Of products, in the released store."""
    store = Store.open(shipped_bundle() / "store")
    entries = (entry for entry in store.entries("none") if entry.nest.family == "gemm")
    return [
        Recipe.from_dict(json.loads(text))
        for text in sorted({r.schedule for entry in entries for r in entry.records})
    ]


@settings(max_examples=10)
@given(st.data())
def test_any_recipe_of_the_store_is_right_or_refused(data: st.DataObject) -> None:
    recipe = data.draw(st.sampled_from(stored_recipes()))
    try:
        wrong = fault("matmul_odd", recipe)
    except NotApplicable as refusal:
        wrong = str(refusal) if "TVM refuses" in str(refusal) else None
    assert wrong is None


def loops_of(name: str, recipe: Recipe) -> list[tuple[int | None, str]]:
    nest = scheduled_nest(apply_recipe(known(name)[0], recipe).mod)
    return [(extent(lp), lp.annotation.kind if lp.annotation else "") for lp in nest.loops()]


def test_a_recipe_becomes_the_loops_that_it_says() -> None:
    found = loops_of("matmul", Recipe(tile_q=24, register_q=6, tile_p=64, register_p=2))
    assert found[:2] == [(4, "parallel"), (2, "")]  # cache tiles
    assert [size for size, _ in found[2:4]] == [4, 2]  # register tiles
    reduction = next(n for n, (size, _) in enumerate(found) if size == 64)
    assert found[reduction + 1 :][:3] == [(6, "unrolled"), (2, "unrolled"), (16, "vectorized")]


def test_what_tvm_has_no_word_for_is_passed_over_or_refused() -> None:
    task, _ = known("matmul")
    silent = Recipe(prefetch=4, omp_schedule="dynamic", nontemporal=True)
    assert program_key(apply_recipe(task, silent).mod) == program_key(apply_recipe(task, Recipe()).mod)
    for recipe, field in ((Recipe(library="blas"), "library"), (Recipe(parallel="reduction"), "parallel")):
        with pytest.raises(NotApplicable, match=f"^{field}: "):
            apply_recipe(task, recipe)
    with pytest.raises(NotApplicable, match=r"^fuse: "):
        apply_recipe(known("conv2d_padded")[0], Recipe(fuse=1))


def test_a_packed_operand_is_read_from_its_copy() -> None:
    recipe = Recipe(order="panel", tile_q=48, tile_p=64, tile_r=32, register_q=8, register_p=3, pack="q")
    nest = scheduled_nest(apply_recipe(known("matmul")[0], recipe).mod)
    assert "B_global" in nest.buffers
