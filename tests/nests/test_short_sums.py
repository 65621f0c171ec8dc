"""Sums of a few terms are written out, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory

from gnnperf.nests import Loop, Node, normalise
from gnnperf.nests.ir import walk
from gnnperf.nests.short_sums import MOST_TERMS, write_out_sums

N = 12
BUFFERS = [
    array("x", N + MOST_TERMS), array("y", N), array("w", MOST_TERMS + 1), array("s"),
    array("t", N + 4, transient=True),
    array("a", N + 4, dtype="int8"), array("b", 3, dtype="int8"), array("c", N, dtype="int32"),
]  # fmt: skip
TERM = mul(load("w", "k"), load("x", add("i", "k")))


def filtered(count: int, term: object = TERM, target: str = "y", by: str = "add") -> Loop:
    return loop("i", N, loop("k", count, accumulate(load(target, "i"), term, by=by)))  # type: ignore[arg-type]


def same(before: tuple[Node, ...], after: tuple[Node, ...]) -> None:
    one, other = nest("one", BUFFERS, *before), nest("other", BUFFERS, *after)
    memory = random_memory(one, np.random.default_rng(0))
    expected, found = interpret(one, memory), interpret(other, memory)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


def test_a_filter_is_an_expression() -> None:
    made = write_out_sums(filtered(2), nest("example", BUFFERS).buffers)
    terms = [mul(load("w", 0), load("x", "i")), mul(load("w", 1), load("x", add("i", 1)))]
    assert made == loop("i", N, accumulate(load("y", "i"), op("add", *terms)))


@pytest.mark.parametrize("by", ["add", "mul", "min", "max"])
@pytest.mark.parametrize("count", [2, MOST_TERMS])
def test_results_are_the_same(by: str, count: int) -> None:
    before = filtered(count, by=by)
    after = write_out_sums(before, nest("example", BUFFERS).buffers)
    assert [lp.iterator for lp in walk((after,)) if isinstance(lp, Loop)] == ["i"]
    same((before,), (after,))


def test_a_sum_with_an_initial_value_is_a_value() -> None:
    first = loop("i", N, loop("k", 2, accumulate(load("y", "i"), TERM, init=0.0)))
    terms = [mul(load("w", 0), load("x", "i")), mul(load("w", 1), load("x", add("i", 1)))]
    buffers = nest("example", BUFFERS).buffers
    assert write_out_sums(first, buffers) == loop("i", N, assign(load("y", "i"), op("add", *terms)))
    most = loop("i", N, loop("k", 3, accumulate(load("y", "i"), TERM, by="max", init=0.5)))
    same((most,), (write_out_sums(most, buffers),))


def test_terms_are_as_wide_as_the_sum() -> None:
    """Bytes are added up in 32 bits."""
    before = filtered(3, mul(load("a", add("i", "k")), load("b", "k")), "c")
    after = write_out_sums(before, nest("example", BUFFERS).buffers)
    same((before,), (after,))
    assert str(after).count("cast:int32") == 3


@pytest.mark.parametrize(
    "node",
    {
        "too many terms": filtered(MOST_TERMS + 1),
        "a single term": filtered(1),
        "how many is not known": loop("i", N, loop("k", "i", accumulate(load("y", "i"), TERM))),
        "bounds of the others depend on it": loops(
            {"k": 3}, loop("i", add("k", 4), accumulate(load("y", "i"), load("x", "k")), start="k")
        ),
        "a sum of everything": loop("k", 3, accumulate(load("s"), load("w", "k"))),
        "the sum is in its terms": loops({"i": N, "k": 3}, accumulate(load("y", "i"), load("y", "k"))),
        "no sum": loops({"i": N, "k": 3}, assign(load("y", "i"), TERM)),
    }.values(),
)
def test_others_stay(node: Loop) -> None:
    assert write_out_sums(node, nest("example", BUFFERS).buffers) == node


def test_what_reads_a_short_sum_may_compute_it() -> None:
    """Zeros all over, a sum of three terms inside, of which all that is read is inside."""
    zeros = loop("i", N + 4, assign(load("t", "i"), 0.0))
    first = loop("i", N + 2, assign(load("t", "i"), 0.0), loop("k", 3, accumulate(load("t", "i"), TERM)))
    reading = loop("i", N, assign(load("y", "i"), mul(0.5, load("t", add("i", 1)))))
    whole = nest("example", BUFFERS, zeros, first, reading)
    normal = normalise(whole)
    assert {s.target.buffer for s in normal.statements()} == {"y"} and len(normal.body) == 1
    memory = random_memory(whole, np.random.default_rng(1))
    np.testing.assert_allclose(interpret(normal, memory)["y"], interpret(whole, memory)["y"], rtol=1e-12)
