"""Loops are shared between threads only where that cannot race."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nests import examples
from nests.examples import accumulate, add, array, assign, load, loop, nest, op
from nests.interpret import Memory, interpret, random_memory
from schedules.recipes.kernels import (
    Kernel,
    below,
    csr,
    histogram,
    local_sum,
    matrix_product,
    polynomial,
    reduce_axis,
    scatter_rows,
    two_reductions,
)
from schedules.recipes.running import build, call, differences

from gnnperf.nests import Buffer, Loop, LoopNest, Symbol, normalise
from gnnperf.nests.analysis import access_counts
from gnnperf.nests.ir import walk
from gnnperf.schedules.recipes import Recipe, apply, emit
from gnnperf.schedules.recipes.threads import private_reductions


def parallel_loops(scheduled: LoopNest) -> list[Loop]:
    return [
        n
        for n in walk(scheduled.body)
        if isinstance(n, Loop) and n.annotation is not None and n.annotation.kind == "parallel"
    ]


def private_of(kernel: LoopNest, recipe: Recipe) -> list[set[str]]:
    """Which buffers each parallel loop reduces in private copies."""
    scheduled = apply(recipe, normalise(kernel))
    counts = access_counts(scheduled.body)
    found = [private_reductions(lp, scheduled.buffers, counts) for lp in parallel_loops(scheduled)]
    assert all(p is not None for p in found)
    return [set(p or ()) for p in found]


def test_rows_of_the_result_are_shared_as_they_are() -> None:
    assert private_of(matrix_product(32, 32, 32), Recipe()) == [set()]


def test_tiles_and_their_remainders_are_shared_as_they_are() -> None:
    recipe = Recipe(order="blocked", tile_q=16, register_q=6, tile_p=64, register_p=2, tile_r=16)
    assert not any(private_of(matrix_product(100, 100, 100), recipe))


def test_a_parallel_reduction_works_in_copies() -> None:
    assert private_of(reduce_axis("", "add"), Recipe(parallel="reduction")) == [{"s"}]


def test_iterations_that_meet_in_one_element_work_in_copies() -> None:
    assert private_of(polynomial(), Recipe()) == [{"Y"}]
    assert private_of(histogram(), Recipe()) == [{"h"}]


def test_a_local_of_an_enclosing_block_is_not_shared() -> None:
    scheduled = apply(Recipe(), normalise(local_sum(independent=False)))
    assert not parallel_loops(scheduled)


def test_two_kinds_of_reduction_of_one_array_are_not_shared() -> None:
    n = 9
    target = load("s", load("b", "i"))
    both = loop("i", n, accumulate(target, 1.0), accumulate(target, 2.0, "max"))
    kernel = nest("both", [array("b", n, dtype="int32"), array("s", n)], both)
    assert not parallel_loops(apply(Recipe(), kernel))


def test_an_array_of_unknown_size_is_not_copied() -> None:
    unknown = Buffer("h", "float64", (Symbol("bins"),), (1,))
    body = loop("i", 50, accumulate(load("h", load("b", "i")), 1.0))
    kernel = LoopNest("h", {"b": array("b", 50, dtype="int32"), "h": unknown}, (body,), {"bins": 7})
    assert not parallel_loops(apply(Recipe(), kernel))


def test_collapse_needs_loops_whose_stores_are_apart() -> None:
    (only,) = parallel_loops(apply(Recipe(order="row", vector="none", collapse=3), matrix_product(8, 8, 8)))
    assert only.annotation is not None and only.annotation.collapse <= 2


def test_a_plain_store_is_shared_by_the_promise_of_the_frontend() -> None:
    body = loop("i", 50, assign(load("out", load("order", "i")), load("x", "i")))
    kernel = nest("scatter", [array("order", 50, dtype="int32"), array("x", 50), array("out", 50)], body)
    assert len(parallel_loops(apply(Recipe(vector="none"), kernel))) == 1


# --------------------------------------------------------------------------- many runs


CUBE = (20, 30, 40)
DYNAMIC = Recipe(parallel="reduction", omp_schedule="dynamic", chunk=1)
STREAM = Recipe(order="stream", vector="none", parallel="reduction")
RACY = {
    "total": (Kernel(reduce_axis("", "add", CUBE)), DYNAMIC),
    "maximum": (Kernel(reduce_axis("", "max", CUBE)), STREAM),
    "least": (
        Kernel(reduce_axis("i", "min", CUBE)),
        Recipe(parallel="reduction", tile_r=8, accumulate=False),
    ),
    "product": (Kernel(matrix_product(20, 30, 50)), Recipe(order="stream", parallel="reduction", tile_r=8)),
    "polynomial": (Kernel(polynomial(300, 40)), Recipe(omp_schedule="dynamic", chunk=4)),
    "histogram": (Kernel(histogram(3000), below(bin=7)), Recipe(omp_schedule="guided")),
    "scatter": (Kernel(scatter_rows(300), below(row=6)), Recipe(register_p=1)),
    "two_sums": (Kernel(two_reductions(60, 50)), Recipe(parallel="reduction")),
    "spmm": (
        Kernel(examples.spmm(200, 11, 600, 19), csr(11)),
        Recipe(omp_schedule="balanced", register_p=1, prefetch=4),
    ),
}


def test_many_runs_give_one_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    nests = {name: normalise(kernel.nest) for name, (kernel, _) in RACY.items()}
    functions = {name: emit(apply(recipe, nests[name]), name) for name, (_, recipe) in RACY.items()}
    library = build(list(functions.values()), tmp_path)
    for name, (kernel, _) in RACY.items():
        memory = kernel.memory(np.random.default_rng(0))
        expected = interpret(kernel.nest, memory)
        for _ in range(30):
            assert not differences(expected, call(library, functions[name], nests[name], memory)), name


def test_balanced_rows_are_a_partition_whatever_the_row_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts and ends that do not ascend: uneven shares, but every row once."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    rows, size = 60, 40
    term = accumulate(load("y", "i"), load("A", "k"))
    body = loop("k", load("last", "i"), term, start=load("first", "i"))
    starts = [array(b, rows, dtype="int32") for b in ("first", "last")]
    buffers = [*starts, array("A", size), array("y", rows)]
    kernel = nest("windows", buffers, loop("i", rows, body))
    function = emit(apply(Recipe(omp_schedule="balanced"), kernel), "windows")
    assert "mine = balanced_row" in function.source
    library = build([function], tmp_path)
    rng = np.random.default_rng(0)
    for _ in range(20):
        first = rng.integers(0, size, rows).astype(np.int32)
        memory: Memory = {
            "first": first,
            "last": np.minimum(size, first + rng.integers(0, 9, rows)).astype(np.int32),
            "A": rng.random(size),
            "y": np.zeros(rows),
        }
        assert not differences(interpret(kernel, memory), call(library, function, kernel, memory))


@pytest.mark.parametrize(
    ("columns", "value", "shared"),
    [(2100, "k", 1), (16_500, "k", 2), (900, op("exp", "k"), 1), (1000, op("exp", "k"), 2)],
)
def test_brief_loops_that_others_repeat_are_not_shared(columns: int, value: Any, shared: int) -> None:
    """A border of some thousand elements is written by the time that another thread has woken up, and been
    waited for."""
    border = loop("k", columns, assign(load("B", "k"), value))
    sweep = loop("i", 9000, assign(load("A", "i"), load("A", "i")))
    arrays = [array("A", 9000), array("B", columns)]
    repeated = nest("steps", arrays, loop("t", 9, sweep, border, independent=False))
    assert len(parallel_loops(apply(Recipe(order="row"), repeated))) == shared
    assert len(parallel_loops(apply(Recipe(order="row"), nest("once", arrays, sweep, border)))) == 2


@pytest.mark.parametrize(("n", "regions"), [(600, 0), (4000, 1)])
def test_threads_do_not_wait_for_each_other_for_less_than_that_takes(n: int, regions: int) -> None:
    arrays = [array("A", n), array("B", n)]
    repeated = nest("steps", arrays, loop("t", 9, sweep("B", "A", n), sweep("A", "B", n), independent=False))
    once = nest("once", arrays, sweep("B", "A", n))
    for example, count in ((repeated, regions), (once, 1)):
        scheduled = apply(Recipe(order="row"), example)
        assert emit(scheduled, "f").source.count("#pragma omp parallel") == count


def sweep(target: str, source: str, n: int = 4000) -> Loop:
    return loop("i", n - 1, assign(load(target, "i"), add(load(source, "i"), load(source, add("i", 1)))))


BORDER = loop("k", 2, assign(load("A", "k"), load("B", 7)))
TOTAL = loop("i", 4000, accumulate(load("s"), load("A", "i")))
STEP = (sweep("B", "A"), sweep("A", "B"))
TEAMS = {
    "one after the other": ([sweep("B", "A"), sweep("C", "B")], 1),
    "steps": ([loop("t", 5, *STEP, independent=False)], 1),
    "steps with scratch and a border": (
        [loop("t", 5, sweep("T", "A"), sweep("A", "T", 3999), BORDER, independent=False), sweep("B", "A")],
        1,
    ),
    "steps of steps": (
        [loop("r", 2, BORDER, loop("t", 3, *STEP, independent=False), independent=False)],
        1,
    ),
    "one alone": ([sweep("B", "A")], 1),
    "a sum that one thread does": ([*STEP, TOTAL, sweep("C", "B")], 1),
    "steps with a sum": ([loop("t", 3, *STEP, TOTAL, independent=False)], 1),
    "as long as it is small": (
        [loop("t", 5, *STEP, independent=False, condition=op("lt", load("A", 0), 1e9))],
        1,
    ),
}


@pytest.mark.parametrize("schedule", ["static", "dynamic"])
def test_loops_that_follow_each_other_are_one_parallel_region(tmp_path: Path, schedule: Any) -> None:
    arrays = [array(name, 4000) for name in "ABC"]
    arrays += [array("T", 4000, transient=True), array("s")]
    kernels = [nest("kernel", arrays, *nodes) for nodes, _ in TEAMS.values()]
    recipe = Recipe(order="row", register_p=2, omp_schedule=schedule, chunk=64)
    functions = [emit(apply(recipe, kernel), f"f{n}") for n, kernel in enumerate(kernels)]
    regions = [function.source.count("#pragma omp parallel") for function in functions]
    assert regions == [expected for _, expected in TEAMS.values()]
    library = build(functions, tmp_path)
    for function, kernel in zip(functions, kernels, strict=True):
        memory = random_memory(kernel, np.random.default_rng(0))
        assert not differences(interpret(kernel, memory), call(library, function, kernel, memory))
