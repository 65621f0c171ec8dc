"""Stencils of stencils in tiles of rows: what each computes for a tile, and that results stay the same."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory
from nests.random_programs import random_stencils
from schedules.recipes.running import differences

from gnnperf.errors import NotApplicable
from gnnperf.nests import LoopNest, Node, normalise, partition
from gnnperf.nests.overlap import MOST_ROWS_AGAIN, OWN, Overlap, Rows, Span, overlap
from gnnperf.schedules.recipes import Recipe, apply

M, N = 30, 8


def shared(example: LoopNest) -> Overlap | None:
    scratch = {name for name, buffer in example.buffers.items() if buffer.transient}
    return overlap(example.body, example.buffers, scratch)


def sweep(target: str, source: str, *rows: int, border: int = 0) -> Node:
    """target[i] = sum of source[i + row], inside a border of rows."""
    value = add(*[load(source, add("i", row) if row else "i", "j") for row in rows], 0.0)
    return loop("i", M - border, loop("j", N, assign(load(target, "i", "j"), value)), start=border)


def chain(*nodes: Node, scratch: str = "tu") -> LoopNest:
    return nest(
        "chain", [array(x, M, N, transient=x in scratch) for x in "atuv"] + [array("w", M, N)], *nodes
    )


def test_a_tile_computes_what_it_reads() -> None:
    """t[i] of a[i]; u[i] of t[i - 1] to t[i + 2]; v[i] of u[i] and u[i + 1], and of t[i - 3]."""
    example = chain(
        sweep("t", "a", 0),
        sweep("u", "t", -1, 2, border=2),
        loops({"i": M - 8, "j": N}, assign(load("v", add("i", 4), "j"), load("t", add("i", 1), "j"))),
        sweep("v", "u", 0, 1, border=4),
    )
    found = shared(example)
    assert found is not None and found.has_margins
    assert [part.span for part in found.parts] == [Span(-3, 3), Span(0, 1), OWN, OWN]
    assert [part.shift for part in found.parts] == [0, 0, 4, 0]
    assert found.scratch == {"t": Rows(0, Span(-3, 3)), "u": Rows(0, Span(0, 1))}
    assert (found.start, found.stop) == (4, M - 4)
    scheduled = apply(Recipe(fuse=5), example)
    assert {name: scheduled.buffers[name].shape for name in "tu"} == {"t": (5 + 6, N), "u": (5 + 1, N)}


def test_what_is_left_for_later_is_computed_once() -> None:
    """The rows beside its own that v reads are another tile's, unless they are in scratch memory."""
    nodes = [sweep("t", "a", 0), sweep("v", "t", 0, 1, border=1)]
    assert shared(chain(*nodes)) is not None
    assert shared(chain(*nodes, scratch="u")) is None


@pytest.mark.parametrize(
    "last",
    [
        sweep("a", "t", -1, 1, border=1),  # what the first reads for its neighbours, too
        loops({"i": M, "j": N}, assign(load("v", "j", "i"), load("t", "j", "i"))),  # columns
        loop("i", M, assign(load("v", "i", 0), load("t", mul(2, "i"), 0))),  # no constant distance
        loop(
            "i",
            M - 1,
            loop("j", N, assign(load("v", "i", "j"), load("v", add("i", 1), "j"))),
            independent=False,
        ),
    ],
)
def test_tiles_stay_independent(last: Node) -> None:
    assert shared(chain(sweep("t", "a", 0), last)) is None


def test_a_tile_computes_few_rows_twice() -> None:
    reach = MOST_ROWS_AGAIN // 2
    assert shared(chain(sweep("t", "a", 0), sweep("v", "t", -reach, reach, border=reach))) is not None
    assert shared(chain(sweep("t", "a", 0), sweep("v", "t", -reach, reach + 1, border=reach + 1))) is None


def test_elements_of_a_row_are_not_shared() -> None:
    """Tiles of single elements would undo vectors."""
    line = nest(
        "line", [array("a", M), array("t", M, transient=True), array("v", M)],
        loop("i", M, assign(load("t", "i"), load("a", "i"))),
        loop("i", M - 1, assign(load("v", "i"), add(load("t", "i"), load("t", add("i", 1))))),
    )  # fmt: skip
    assert shared(line) is None


def test_stencils_of_stencils_are_one_unit() -> None:
    example = chain(sweep("t", "a", 0), sweep("u", "t", -1, 1, border=1), sweep("v", "u", -1, 1, border=2))
    items = [(node,) for node in example.body]
    assert partition(items, example.buffers, {"a", "v"}) == [[0, 1, 2]]


@pytest.mark.parametrize("reach", [2, 5])
def test_windows_along_both_axes_share_rows(reach: int) -> None:
    """Windows that end with the array: most of it is computed as if there were no end."""
    taps = 2 * reach + 1

    def window(target: str, source: str, at: str, size: int) -> Node:
        beside = add(at, add("k", -reach))
        place = load(source, *(beside if name == at else name for name in "ij"))
        inside = loop(
            "k", op("min", taps, op("sub", size + reach, at)),
            accumulate(load(target, "i", "j"), mul(load("w", "k"), place), init=0.0),
            start=op("max", 0, op("sub", reach, at)),
        )  # fmt: skip
        return loops({"i": 40, "j": 30}, inside)

    arrays = [array(x, 40, 30, transient=x == "t") for x in "atv"]
    example = nest("blur", [*arrays, array("w", taps)], window("t", "a", "j", 30), window("v", "t", "i", 40))
    assert partition([(node,) for node in example.body], example.buffers, {"a", "v"}) == [[0, 1]]
    normal = normalise(example)
    assert len(normal.body) == 6
    scheduled = apply(Recipe(fuse=8), normal)
    assert scheduled.buffers["t"].shape == (8 + 2 * reach, 30)
    memory = random_memory(example, np.random.default_rng(0))
    expected = interpret(example, memory)
    assert not differences(expected, interpret(normal, memory))
    assert not differences(expected, interpret(scheduled, memory, True))


@given(st.randoms(use_true_random=False))
def test_tiles_compute_the_same_in_any_order(rng: Random) -> None:
    example = normalise(random_stencils(rng))
    memory = random_memory(example, np.random.default_rng(0))
    expected = interpret(example, memory)
    for width in (1, 4, 64):
        try:
            scheduled = apply(Recipe(fuse=width, vector="none"), example)
        except NotApplicable:
            return
        for backwards in (False, True):
            assert not differences(expected, interpret(scheduled, memory, backwards))


def test_most_random_chains_share_rows() -> None:
    chains = [normalise(random_stencils(Random(seed))) for seed in range(40)]
    assert sum(shared(example) is not None for example in chains) > 20
    bare = [
        replace(c, buffers={n: replace(b, transient=False) for n, b in c.buffers.items()}) for c in chains
    ]
    assert not any(found.has_margins for found in map(shared, bare) if found)
