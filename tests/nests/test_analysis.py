"""Facts about nests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from nests.examples import accumulate, add, assign, load, loop, mul, op

from gnnperf.nests import Node
from gnnperf.nests.affine import evaluate
from gnnperf.nests.analysis import conditional_loads, longest_chain
from gnnperf.nests.ir import Expr

TERM = accumulate(load("y", "i"), mul(load("A", "i", "j"), load("x", "j")))


def value(expr: Expr, values: Mapping[str, int]) -> int | None:
    return evaluate(expr, {"n": 6, **values})


@pytest.mark.parametrize(
    ("node", "length"),
    [
        (loop("i", 5, loop("j", 7, TERM)), 7),
        (loop("i", 5, loop("j", "i", TERM)), 4),
        (loop("i", 5, loop("j", 5, TERM, start="i")), 5),
        (loop("t", 3, loop("i", 5, loop("j", "n", TERM))), 18),
        (loop("t", "n", assign(load("y", "t"), load("x", "t")), independent=False), 6),
        (loop("i", 5, assign(load("y", "i"), load("x", "i"))), 1),
        (loop("i", 5, loop("j", load("rows", "i"), TERM)), 32),
    ],
)
def test_the_longest_chain_of_roundings(node: Node, length: int) -> None:
    assert longest_chain((node,), value, unknown=32) == length


def test_loads_are_made_for_what_comes_before_them() -> None:
    a, b, x, y = (load(name) for name in "abxy")
    assert conditional_loads(op("and", op("and", a, b), x)) == ((a, ()), (b, (a,)), (x, (a, b)))
    assert conditional_loads(op("or", a, x)) == ((a, ()), (x, (op("not", a),)))
    chosen = op("select", op("and", a, b), x, add(y, load("A", a)))
    otherwise = (op("not", op("and", a, b)),)
    assert conditional_loads(chosen) == (
        (a, ()), (b, (a,)), (x, (a, b)), (y, otherwise), (load("A", a), otherwise), (a, otherwise),
    )  # fmt: skip
