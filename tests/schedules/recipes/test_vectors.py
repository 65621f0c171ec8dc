"""The end of a loop that is no whole number of vectors: a full one over elements that are done, where that
changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.devices import describe_host
from gnnperf.nests import LoopNest, Node
from gnnperf.schedules.recipes import Recipe, apply, emit
from gnnperf.schedules.recipes.expressions import chunks

LANES = describe_host().vectors.bytes // 8


@pytest.mark.parametrize(
    ("size", "apart", "overlapping"),
    [
        (32, [(0, 16), (16, 16)], None),
        (20, [(0, 16), (16, 4)], None),  # no fewer
        (28, [(0, 16), (16, 8), (24, 4)], [(0, 16), (12, 16)]),
        (33, [(0, 16), (16, 16), (32, 1)], None),
        (35, [(0, 16), (16, 16), (32, 2), (34, 1)], [(0, 16), (16, 16), (19, 16)]),
        (15, [(0, 8), (8, 4), (12, 2), (14, 1)], None),  # no full vector
    ],
)  # fmt: skip
def test_vectors_of_a_loop(
    size: int, apart: list[tuple[int, int]], overlapping: list[tuple[int, int]] | None
) -> None:
    assert list(chunks(size, 16)) == apart
    assert list(chunks(size, 16, overlap=True)) == (overlapping or apart)


def example(*body: Node, size: int) -> LoopNest:
    matrices = [array("A", 6, 7), array("B", 7, size), array("C", 6, size), array("D", 6, size)]
    return nest("tails", [*matrices, array("s", 6)], *body)


def programs(size: int) -> dict[str, LoopNest]:
    c, d = load("C", "i", "j"), load("D", "i", "j")
    over = {"i": 6, "j": size}
    product = mul(load("A", "i", "k"), load("B", "k", "j"))
    return {
        "a product": example(loops({**over, "k": 7}, accumulate(c, product, init=0)), size=size),
        "a product that is added": example(loops({**over, "k": 7}, accumulate(c, product)), size=size),
        "pointwise": example(loops(over, assign(c, op("sqrt", d))), size=size),
        "in place": example(loops(over, assign(c, mul(2.0, c))), size=size),
        "two that need each other": example(loops(over, assign(c, mul(2.0, d)), assign(d, c)), size=size),
        "rows' sums": example(loop("i", 6, loop("j", size, accumulate(load("s", "i"), c))), size=size),
    }


RECIPES = (
    Recipe(order="row", register_p=2, vector="p"),
    Recipe(order="panel", register_q=3, register_p=4, vector="p"),
    Recipe(order="dot", register_r=2, vector="r"),
)


@pytest.mark.slow
def test_no_element_is_changed_twice(tmp_path: Path) -> None:
    functions, nests = [], []
    for size in (LANES + 7, 2 * LANES - 1, 3 * LANES + 3, 4 * LANES + 3, 5 * LANES - 1):
        for name, program in programs(size).items():
            for number, recipe in enumerate(RECIPES):
                functions.append(emit(apply(recipe, program), f"tail_{len(functions)}"))
                nests.append((f"{name}, {size}, {number}", program))
    library = build(functions, tmp_path)
    for function, (what, program) in zip(functions, nests, strict=True):
        memory = random_memory(program, np.random.default_rng(0))
        expected = interpret(program, memory)
        assert not differences(expected, call(library, function, program, memory)), what


def test_a_product_goes_through_its_reduction_once() -> None:
    """Two vectors of a row that is shorter, where narrower ones would be three."""
    size = 2 * LANES - 1
    source = emit(apply(RECIPES[1], programs(size)["a product"]), "product").source
    assert f"load<{LANES}>" in source and f"load<{LANES // 2}>" not in source
    source = emit(apply(RECIPES[0], programs(size)["in place"]), "product").source
    assert f"load<{LANES // 2}>" in source
