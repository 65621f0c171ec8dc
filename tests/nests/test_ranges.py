"""Trip counts, ranges of subscripts, and iterations that never meet in one element."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import accumulate, add, load, loop, loops, mul, op
from nests.test_affine import index_expressions, value

from gnnperf.nests.analysis import extent
from gnnperf.nests.ir import Expr, Load, Loop, Node
from gnnperf.nests.ranges import longest, separates, value_range


@given(index_expressions(), st.tuples(*(st.integers(1, 4) for _ in "ijk")))
def test_no_value_is_outside_of_the_range(expr: Expr, sizes: tuple[int, ...]) -> None:
    around = {name: [loop(name, size)] for name, size in zip("ijk", sizes, strict=True)}
    low, high = value_range(expr, around)
    for point in product(*map(range, sizes)):
        assert low <= value(expr, dict(zip("ijk", point, strict=True))) <= high


def test_ranges_of_tiles_and_triangles() -> None:
    tiles = [loop("t", 60, step=16)]
    points = [loop("i", op("min", add("t", 16), 60), start="t")]
    assert value_range(add("i", 1), {"t": tiles, "i": points}) == (1, 60)
    assert value_range(load("index", "i"), {"i": points})[1] == float("inf")


def test_ranges_of_reflected_places() -> None:
    around = {"i": [loop("i", 9)]}
    assert value_range(op("abs", op("sub", "i", 3)), around) == (0, 5)
    assert value_range(op("max", op("sub", "i", 3), op("sub", 2, "i")), around) == (0, 5)
    assert value_range(op("min", "i", op("sub", 11, "i")), around) == (0, 5)


@pytest.mark.parametrize(
    ("start", "stop", "most"),
    [
        ("t", op("min", add("t", 16), "n"), 16),
        (0, op("min", 5, "n"), 5),
        (0, "n", None),
        ("t", add("t", 3), 3),
    ],
)
def test_upper_bounds_of_trip_counts(
    start: Expr | str | int, stop: Expr | str | int, most: int | None
) -> None:
    tile = loop("i", stop, start=start)
    assert longest(tile.start, tile.stop) == most


@pytest.mark.parametrize(
    ("start", "stop", "step", "count"),
    [
        (0, 10, 1, 10),
        (1, 10, 3, 3),
        ("i", add("i", 6), 1, 6),
        ("i", add("i", 6), 4, 2),
        (5, 2, 1, 0),
        (0, "n", 1, None),
    ],
)
def test_extent(start: Expr | int | str, stop: Expr | int | str, step: int, count: int | None) -> None:
    assert extent(loop("k", stop, start=start, step=step)) == count


def around(target: Load, **extents: Expr | int) -> Loop:
    return loops(dict(extents), accumulate(target, 1.0))


@pytest.mark.parametrize(
    ("target", "apart"),
    [
        (load("y", "i", "k"), True),
        (load("y", "k"), False),
        (load("y", add("i", "k")), False),
        (load("y", add(mul(8, "i"), "k")), True),
        (load("y", add(mul(7, "i"), "k")), False),
        (load("y", add("i", "k"), "i"), True),
        (load("y", load("index", "i")), False),
        (load("y", op("floordiv", "i", 2)), False),
        (load("y", add("i", op("mod", "k", 2))), False),
    ],
)
def test_iterations_that_never_meet(target: Load, apart: bool) -> None:
    """Loops i < 5, k < 8."""
    assert separates(target, around(target, i=5, k=8)) is apart


def test_iterations_of_tiles_never_meet() -> None:
    points = loop("i", op("min", add("it", 4), 10), accumulate(load("y", "i"), 1.0), start="it")
    tiles = loop("it", 10, points, step=4, tile_level=2)
    assert separates(load("y", "i"), tiles)
    assert not separates(load("y", op("sub", "i", "it")), tiles)


def test_a_linear_subscript_of_tiles_never_meets() -> None:
    """y[60 i + j] with j tiled by 16, which does not divide 60."""
    target = load("y", add(mul(60, "i"), "j"))
    points = loop("j", op("min", add("jt", 16), 60), accumulate(target, 1.0), start="jt")
    tiles = loop("jt", 60, points, step=16, tile_level=2)
    assert separates(target, loop("i", 9, tiles))
    wider: Node = loop("j", op("min", add("jt", 16), 61), accumulate(target, 1.0), start="jt")
    assert not separates(target, loop("i", 9, loop("jt", 61, wider, step=16, tile_level=2)))
