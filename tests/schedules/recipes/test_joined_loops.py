"""Short loops that go through memory together are one loop; whoever goes otherwise keeps them apart."""

from __future__ import annotations

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory

from gnnperf.nests import Loop, LoopNest
from gnnperf.nests.ir import Node, walk
from gnnperf.schedules.recipes import Recipe, apply
from gnnperf.schedules.recipes.joined_loops import SHORT, join_short_loops

B, C, H, W = 3, 4, 5, 7
IMAGES = {"n": B, "c": C, "i": H, "j": W}


def images(*body: Node) -> LoopNest:
    arrays = [array(name, B, C, H, W) for name in "XY"]
    return nest("example", [*arrays, array("M", B, C), array("w", C), array("row", W)], *body)


def scaled(weight: str = "w", *index: str) -> Node:
    at = load(weight, *(index or ("c",)))
    return loops(IMAGES, assign(load("Y", "n", "c", "i", "j"), mul(load("X", "n", "c", "i", "j"), at)))


def mean() -> Node:
    return loops(IMAGES, accumulate(load("M", "n", "c"), load("X", "n", "c", "i", "j"), init=0))


def extents(whole: LoopNest) -> list[list[int]]:
    """Of the loops of each node, outermost first."""
    nodes = ((n for n in walk((node,)) if isinstance(n, Loop)) for node in whole.body)
    return [[lp.stop.value - lp.start.value for lp in loops] for loops in nodes]  # type: ignore[union-attr]


def shifted() -> Node:
    """Rows above: the outer dimension has an offset, and its loop begins at 1."""
    above = load("X", "n", "c", add("i", -1), "j")
    inner = loop("i", H, loop("j", W, assign(load("Y", "n", "c", "i", "j"), above)), start=1)
    return loops({"n": B, "c": C}, inner)


JOINED = {
    "pointwise": (images(scaled()), [[B, C, H * W]]),
    "nothing but the whole": (
        images(loops(IMAGES, assign(load("Y", "n", "c", "i", "j"), load("X", "n", "c", "i", "j")))),
        [[B, C * H * W]],
    ),
    "a sum": (images(mean()), [[B, C, H * W]]),
    "a sum, and what needs its array": (images(mean(), scaled("M", "n", "c")), [[B, C, H * W]] * 2),
    "rows above": (images(shifted()), [[B, C, (H - 1) * W]]),
    "rows of one length": (images(scaled("row", "j")), [[B, C * H, W]]),
    "neighbours in a row": (
        images(
            loops(
                {"n": B, "c": C, "i": H, "j": W - 1},
                assign(load("Y", "n", "c", "i", "j"), load("X", "n", "c", "i", add("j", 1))),
            )
        ),
        [[B, C * H, W - 1]],
    ),
    "a while loop in it": (
        images(
            loops(
                IMAGES,
                loop(
                    "k",
                    9,
                    accumulate(load("Y", "n", "c", "i", "j"), 1.0),
                    independent=False,
                    condition=op("lt", load("Y", "n", "c", "i", "j"), 4.0),
                ),
            )
        ),
        [[B, C * H * W, 9]],
    ),
    "through an index": (
        nest(
            "gathered",
            [array("X", 9, H, W), array("Y", B, H, W), array("at", B, dtype="int64")],
            loops(
                {"n": B, "i": H, "j": W},
                assign(load("Y", "n", "i", "j"), load("X", load("at", "n"), "i", "j")),
            ),
        ),
        [[B, H * W]],
    ),
}

KEPT = {
    "the iterator itself": images(
        loops(IMAGES, assign(load("Y", "n", "c", "i", "j"), op("cast:float64", add("c", "i"))))
    ),
    "not where it holds": images(
        loops(IMAGES, assign(load("Y", "n", "c", "i", "j"), 1.0, guard=op("lt", "i", "j")))
    ),
    "another nest goes by rows": images(
        scaled(), loops({"n": B, "j": W}, assign(load("Y", "n", 0, 0, "j"), load("row", "j")))
    ),
    "turned": nest(
        "turned",
        [array("A", B, H, W), array("At", B, W, H)],
        loops({"n": B, "i": H, "j": W}, assign(load("A", "n", "i", "j"), load("At", "n", "j", "i"))),
    ),
    "with a gap": nest(
        "padded",
        [array("A", B, H, W, strides=(H * 8, 8, 1)), array("T", B, H, W)],
        loops({"n": B, "i": H, "j": W}, assign(load("A", "n", "i", "j"), load("T", "n", "i", "j"))),
    ),
    "nothing around that threads could share": nest(
        "matrix",
        [array("A", H, W), array("T", H, W)],
        loops({"i": H, "j": W}, assign(load("A", "i", "j"), load("T", "i", "j"))),
    ),
    "one image around": nest(
        "one",
        [array("A", 1, H, W), array("T", 1, H, W)],
        loops({"n": 1, "i": H, "j": W}, assign(load("A", "n", "i", "j"), load("T", "n", "i", "j"))),
    ),
    "neighbouring rows": images(
        loops(
            {"n": B, "c": C, "i": H - 1, "j": W - 1},
            assign(load("Y", "n", "c", "i", "j"), load("X", "n", "c", add("i", 1), add("j", 1))),
        )
    ),
    "long": nest(
        "long",
        [array("A", B, H, SHORT), array("T", B, H, SHORT)],
        loops({"n": B, "i": H, "j": SHORT}, assign(load("A", "n", "i", "j"), load("T", "n", "i", "j"))),
    ),
}


def assert_same_results(before: LoopNest, after: LoopNest) -> None:
    memory = random_memory(before, np.random.default_rng(0))
    memory |= {name: values % 9 for name, values in memory.items() if values.dtype == np.int64}
    for backwards in (False, True):
        expected, got = (interpret(n, memory, backwards) for n in (before, after))
        for name in expected:
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-12)


@pytest.mark.parametrize("name", JOINED)
def test_contiguous_loops_become_one(name: str) -> None:
    whole, expected = JOINED[name]
    after = join_short_loops(whole)
    assert extents(after) == expected
    assert_same_results(whole, after)
    assert join_short_loops(after) is after


@pytest.mark.parametrize("name", KEPT)
def test_others_stay_as_they_are(name: str) -> None:
    assert join_short_loops(KEPT[name]) is KEPT[name]


def test_an_array_keeps_its_memory() -> None:
    images_, _ = JOINED["a sum"]
    flat = join_short_loops(images_).buffers["X"]
    assert (flat.shape, flat.strides) == ((B, C, H * W), (C * H * W, H * W, 1))
    assert join_short_loops(images_).buffers["M"] == images_.buffers["M"]


def test_recipes_schedule_the_joined_loops() -> None:
    scheduled = apply(Recipe(vector="none", parallel="none"), JOINED["pointwise"][0])
    assert H * W in extents(scheduled)[0]
