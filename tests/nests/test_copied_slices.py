"""Nests that overwrite what they read slices of run as one where the slices are copied first; else never."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nests.examples import add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.nests import Expr, LoopNest, Node, partition
from gnnperf.nests.analysis import accesses
from gnnperf.nests.combine import combine
from gnnperf.nests.ir import Loop
from gnnperf.schedules.recipes import CppFunction, Recipe, apply, emit

N, M = 9, 7


def pair(value: Expr, result: Expr) -> tuple[Node, Node]:
    """T = value; D = result, with i and j."""
    there = loops({"i": N, "j": M}, assign(load("T", "i", "j"), value))
    back = loops({"i": N, "j": M}, assign(load("D", "i", "j"), result))
    return there, back


def unit(*nodes: Node) -> LoopNest:
    arrays = [
        array("D", N, M),
        array("T", N, M, transient=True),
        array("E", N, M),
        array("at", N, dtype="int64"),
    ]
    return nest("example", arrays, *nodes)


DIFFERENCE = add(load("D", "i", "j"), mul(-1.0, load("D", 0, "j")))
MERGED = {
    "the first row from all": (pair(DIFFERENCE, load("T", "i", "j")), 1),
    "by an element of its own": (pair(mul(load("D", "i", "j"), load("D", 3, 2)), load("T", "i", "j")), 1),
    "a row and a column": (
        pair(add(load("D", "i", 2), load("D", 4, "j")), add(load("D", "i", "j"), load("T", "i", "j"))),
        2,
    ),
    "one twice": (pair(mul(load("D", 1, "j"), load("D", 1, "j")), load("T", "i", "j")), 1),
    "steps": (
        (
            loop(
                "k",
                M,
                *pair(
                    add(load("D", "i", "k"), load("D", "k", "j")),
                    add(load("D", "i", "j"), load("T", "i", "j")),
                ),
                independent=False,
            ),
        ),
        2,
    ),
}
KEPT = {
    "rows beside": pair(load("D", op("mod", add("i", 1), N), "j"), load("T", "i", "j")),
    "looked up": pair(load("D", load("at", 0), "j"), load("T", "i", "j")),
    "on a condition": pair(
        op("select", op("lt", "i", "j"), load("D", 0, "j"), load("E", "i", "j")),
        load("T", "i", "j"),
    ),
    "what is written too": (
        loops({"i": N, "j": M}, assign(load("D", "i", "j"), load("E", "i", "j"))),
        loops({"i": N, "j": M}, assign(load("D", "i", "j"), mul(2.0, load("E", "i", "j")))),
    ),
}


def merged_body(whole: LoopNest) -> list[Node]:
    body = list(combine("merge", whole).body)
    return (
        list(body[0].body)
        if len(body) == 1 and isinstance(body[0], Loop) and not body[0].independent
        else body
    )


@pytest.mark.parametrize("name", MERGED)
def test_slices_are_copied_and_the_nests_run_as_one(name: str) -> None:
    nodes, copies = MERGED[name]
    whole = unit(*nodes)
    after = combine("merge", whole)
    assert len(merged_body(whole)) == copies + 1
    assert "T" not in {access.load.buffer for node in after.body for access in accesses(node)}
    memory = random_memory(whole, np.random.default_rng(0))
    for backwards in (False, True):
        expected, got = interpret(whole, memory, backwards), interpret(after, memory, backwards)
        np.testing.assert_array_equal(got["D"], expected["D"])


@pytest.mark.parametrize("name", KEPT)
def test_nothing_else_is_copied(name: str) -> None:
    assert not [b for b in combine("merge", unit(*KEPT[name])).buffers if "slice" in b]


@pytest.mark.parametrize("name", ["the first row from all", "by an element of its own", "a row and a column"])
def test_nests_that_copies_part_are_one_unit(name: str) -> None:
    (there, back), _ = MERGED[name]
    whole = unit(there, back)
    assert partition([(there,), (back,)], whole.buffers, {"D"}) == [[0, 1]]


def test_a_nest_that_needs_all_of_what_the_next_one_writes_is_a_unit_of_its_own() -> None:
    there, back = pair(load("D", op("sub", N - 1, "i"), op("sub", M - 1, "j")), load("T", "i", "j"))
    assert partition([(there,), (back,)], unit(there, back).buffers, {"D"}) == [[0], [1]]


@pytest.mark.parametrize("name", MERGED)
def test_what_is_emitted_computes_the_same(name: str, tmp_path: Path) -> None:
    whole = unit(*MERGED[name][0])
    memory = random_memory(whole, np.random.default_rng(1))
    expected = interpret(whole, memory)
    recipes = [
        Recipe(order=o, combine=c, fuse=f)
        for o in ("row", "rowtile")
        for c in ("merge", "inline")
        for f in (0, 1)
    ]
    functions = [emit(apply(recipe, whole), f"merged_{n}") for n, recipe in enumerate(recipes)]
    library = build(functions, tmp_path)
    for function in functions:
        assert isinstance(function, CppFunction)
        assert not differences({"D": expected["D"]}, call(library, function, whole, memory))
