"""What is stored again before anybody reads it is not stored twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import add, array, assign, load, loop, loops, mul, nest
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.errors import NotApplicable
from gnnperf.nests import Loop, LoopNest
from gnnperf.nests.ir import Node, walk
from gnnperf.schedules.recipes import DEFAULTS, Recipe, apply, emit
from gnnperf.schedules.recipes.overwritten import without_overwritten

M, N = 24, 30


def copy(source: str = "A", target: str = "B") -> Node:
    return loops({"i": M, "j": N}, assign(load(target, "i", "j"), load(source, "i", "j")))


def stencil(first: int = 1, behind: int = 1) -> Node:
    around = add(load("A", add("x", -1), "y"), load("A", "x", add("y", 1)))
    inner = loop("y", N - behind, assign(load("B", "x", "y"), mul(0.5, around)), start=first)
    return loop("x", M - 1, inner, start=1)


def diagonal(below: int) -> Node:
    return loop("i", M - below, assign(load("B", add("i", below), "i"), load("A", "i", below)))


def gathered(below: int) -> Node:
    return loop("i", M - below, assign(load("B", add("i", below), load("k", "i")), load("A", "i", below)))


def row_of_number(last: int) -> Node:
    return loop("j", N - last, assign(load("B", load("k", 0), "j"), load("A", last, "j")))


def example(*body: Node) -> LoopNest:
    given = [array("A", M, N), array("B", M, N), array("C", M, N), array("k", M, dtype="int64")]
    return nest("example", given, *body)


def ranges(node: Node) -> tuple[tuple[int, int], ...]:
    found = (n for n in walk((node,)) if isinstance(n, Loop))
    return tuple((lp.start.value, lp.stop.value) for lp in found)  # type: ignore[misc,union-attr]


def test_a_copy_under_a_stencil_is_its_borders() -> None:
    whole = example(copy(), stencil())
    *borders, last = without_overwritten(whole.body, whole.buffers)
    assert last == whole.body[-1]
    assert [ranges(b) for b in borders] == [
        ((0, 1), (0, N)), ((M - 1, M), (0, N)), ((1, M - 1), (0, 1)), ((1, M - 1), (N - 1, N))
    ]  # fmt: skip


KEPT = {
    "read in between": example(
        copy(), loops({"i": M, "j": N}, assign(load("C", "i", "j"), load("B", "i", "j"))), stencil()
    ),
    "read by what overwrites": example(
        copy(), loops({"x": M, "y": N}, assign(load("B", "x", "y"), mul(2.0, load("B", "x", "y"))))
    ),
    "hardly overwritten": example(copy(), stencil(behind=N - 4)),
    "another array": example(copy(target="C"), stencil()),
    "diagonals": example(diagonal(0), diagonal(1)),
    "anywhere in a row": example(gathered(0), gathered(1)),
    "another row": example(row_of_number(0), assign(load("k", 0), load("k", 1)), row_of_number(1)),
    "turned": example(copy(), loops({"x": M, "y": M}, assign(load("B", "y", "x"), load("A", "x", "y")))),
}


@pytest.mark.parametrize("name", [name for name in KEPT if name != "turned"])
def test_what_is_read_or_mostly_kept_stays(name: str) -> None:
    whole = KEPT[name]
    assert without_overwritten(whole.body, whole.buffers) == whole.body


RECIPES = (*DEFAULTS[:5], Recipe(order="row", register_p=1, fuse=3), Recipe(order="strip", tile_p=8, fuse=1))


def test_results_are_the_same_however_nests_are_fused(tmp_path: Path) -> None:
    forms = {
        "apart": example(copy(), stencil()),
        "off centre": example(copy(), stencil(first=2)),
        **{name: KEPT[name] for name in KEPT if name not in ("hardly overwritten", "another array")},
        "in a loop": example(loop("t", 3, copy(), stencil(), copy("B", "A"), independent=False)),
    }
    functions = {}
    for name, form in forms.items():
        for number, recipe in enumerate(RECIPES):
            for parallel in ("none", "spatial"):
                try:
                    scheduled = apply(replace(recipe, parallel=parallel), form)
                except NotApplicable:
                    assert name not in ("apart", "off centre") and recipe.fuse
                    continue
                functions[name, number, parallel] = emit(scheduled, f"f{len(functions)}")
    library = build([*functions.values()], tmp_path)
    for (name, number, parallel), function in functions.items():
        memory = random_memory(forms[name], np.random.default_rng(3))
        found = call(library, function, forms[name], memory)
        assert not differences(interpret(forms[name], memory), found), (name, number, parallel)
