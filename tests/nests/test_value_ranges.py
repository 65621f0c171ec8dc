"""Ranges of integers: worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nests.examples import accumulate, array, assign, load, loop, nest, op

from gnnperf.nests.ir import Expr
from gnnperf.nests.value_ranges import ValueRanges, range_of_type

BYTE, WORD = load("byte", "i"), load("word", "i")
UNSIGNED = load("unsigned", "i")


def ranges() -> ValueRanges:
    """i runs from 2 to 9; `own` is set to a byte, `count` counts eight of them up, `looped` itself."""
    own, count, looped = (
        replace(array(name, dtype=dtype), transient=True, scope="local")
        for name, dtype in (("own", "int64"), ("count", "int64"), ("looped", "int32"))
    )
    arrays = [
        array("byte", 10, dtype="uint8"),
        array("word", 10, dtype="int32"),
        array("unsigned", 10, dtype="uint32"),
        array("out", 10, dtype="int64"),
    ]
    body = (
        assign(load("own"), op("add", BYTE, 5)),
        assign(load("looped"), op("add", load("looped"), 1)),
        assign(load("count"), 1),
        loop("k", 8, accumulate(load("count"), BYTE)),
        assign(load("out", "i"), load("count")),
    )
    return ValueRanges(nest("n", [*arrays, own, count, looped], loop("i", 10, *body, start=2)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (load("own"), (5, 260)),
        (load("count"), (1, 1 + 8 * 255)),  # every iteration has its own
        (load("looped"), range_of_type("int32")),
        (load("out", "i"), range_of_type("int64")),  # the caller's, before it is stored to
        (op("sub", BYTE, "i"), (-9, 253)),
        (op("mul", op("sub", BYTE, 10), -2), (-490, 20)),
        (op("floordiv", op("sub", BYTE, 10), 4), (-3, 61)),
        (op("div", op("sub", BYTE, 10), 4), (-2, 61)),
        (op("mod", op("sub", BYTE, 10), 4), (0, 3)),
        (op("mod", BYTE, 256), (0, 255)),
        (op("shr", op("cast:int64", WORD), 4), (-(2**27), 2**27 - 1)),
        (op("shl", BYTE, op("bitand", BYTE, 3)), (0, 255 * 8)),
        (op("bitand", WORD, 48), (0, 48)),
        (op("bitor", BYTE, 256), (0, 511)),
        (op("abs", op("sub", BYTE, 10)), (0, 245)),
        (op("select", op("gt", WORD, 0), BYTE, -1), (-1, 255)),
        (op("max", op("sub", BYTE, 10), 3), (3, 245)),
        (op("lt", WORD, 5), (0, 1)),
        # What does not fit its type wraps around.
        (op("add", UNSIGNED, 1), range_of_type("uint32")),
        (op("sub", BYTE, UNSIGNED), range_of_type("uint32")),
        (op("cast:uint8", op("add", BYTE, 1)), (0, 255)),
        (op("max", op("cast:uint32", 7), -1), (7, 2**32 - 1)),
        (op("mul", op("cast:int64", UNSIGNED), op("cast:int64", UNSIGNED)), range_of_type("int64")),
    ],
)
def test_range(value: Expr, expected: tuple[float, float]) -> None:
    assert ranges().of(value) == expected


def test_elements_of_a_strip_have_sums_of_their_own() -> None:
    strip = replace(array("strip", 10, dtype="int64"), transient=True, scope="local")
    body = (
        loop("j", 10, assign(load("strip", "j"), 0)),
        loop("k", 3, loop("j", 10, accumulate(load("strip", "j"), load("byte", "j")))),
        loop("j", 10, assign(load("out", "j"), load("strip", "j"))),
    )
    arrays = [array("byte", 10, dtype="uint8"), array("out", 10, dtype="int64"), strip]
    found = ValueRanges(nest("strips", arrays, loop("i", 5, *body)))
    assert found.of(load("strip", "j")) == (0, 3 * 255)
