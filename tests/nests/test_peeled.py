"""What stands before a loop and is what the loop would do in one more iteration becomes that iteration."""

from __future__ import annotations

import numpy as np
import pytest
from nests.examples import Operand, accumulate, add, array, assign, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory

from gnnperf.nests import Loop, LoopNest, Node, normalise
from gnnperf.nests.ir import Const

N, M = 6, 4
LOCAL = {"transient": True, "scope": "local"}
BUFFERS = [
    array("L", N, N), array("b", N), array("x", N), array("B", N, M), array("X", N, M),
    array("s", **LOCAL), array("t", **LOCAL), array("r", M, transient=True), array("u", N, transient=True),
]  # fmt: skip


def steps(stop: int, *body: Node, start: int = 0) -> Node:
    return loop("i", stop, *body, start=start, independent=False)


def solve(row: Operand, first: Node | None = None, start: int = 1, stop: int = N) -> LoopNest:
    """L x = b, row by row; `row` is the one that is worked out in iteration i."""
    column = op("add", "j", 0) if row == "i" else op("sub", N - 1, "j")
    total = accumulate(load("s"), mul(load("L", row, column), load("x", column)))
    solved = assign(load("x", row), op("div", op("sub", load("b", row), load("s")), load("L", row, row)))
    before = [] if first is None else [first]
    inner = loop("j", "i", total)
    return nest("solve", BUFFERS, *before, steps(stop, assign(load("s"), 0.0), inner, solved, start=start))


def at(row: int) -> Node:
    return assign(load("x", row), op("div", load("b", row), load("L", row, row)))


def assert_same(one: LoopNest, other: LoopNest) -> None:
    memory = random_memory(one, np.random.default_rng(1))
    expected, found = interpret(one, memory), interpret(other, memory)
    for name in one.outputs:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("row", ["i", op("sub", N - 1, "i")], ids=["forwards", "backwards"])
def test_a_solve_whose_first_row_stands_apart_is_one_loop(row: Operand) -> None:
    peeled = solve(row, at(0 if row == "i" else N - 1))
    assert normalise(peeled).body == normalise(solve(row, start=0)).body
    assert_same(peeled, normalise(peeled))


def test_what_is_added_to_an_empty_sum_is_all_there_is() -> None:
    """x[i] = s + b[i], where the first row is x[0] = b[0]."""
    total = accumulate(load("s"), mul(load("L", "i", "j"), load("x", "j")))
    rows = [
        assign(load("s"), 0.0),
        loop("j", "i", total),
        assign(load("x", "i"), add(load("s"), load("b", "i"))),
    ]
    peeled = nest("sums", BUFFERS, assign(load("x", 0), load("b", 0)), steps(N, *rows, start=1))
    assert normalise(peeled).body == normalise(nest("sums", BUFFERS, steps(N, *rows))).body
    assert_same(peeled, normalise(peeled))


def test_two_iterations_are_taken_back() -> None:
    second = assign(load("x", 1), load("b", 1))
    body = assign(load("x", "i"), load("b", "i"))
    peeled = nest("two", BUFFERS, assign(load("x", 0), load("b", 0)), second, steps(N, body, start=2))
    (only,) = normalise(peeled).body
    assert isinstance(only, Loop) and only.start == Const(0)
    assert_same(peeled, normalise(peeled))


def test_a_loop_from_zero_takes_back_what_it_would_do_at_minus_one() -> None:
    """Its iterations are counted anew."""
    body = assign(load("x", add("i", 1)), mul(load("b", add("i", 1)), 2.0))
    peeled = nest("shifted", BUFFERS, assign(load("x", 0), mul(load("b", 0), 2.0)), steps(N - 1, body))
    (only,) = normalise(peeled).body
    assert isinstance(only, Loop) and (only.start, only.stop) == (Const(0), Const(N))
    assert_same(peeled, normalise(peeled))


def test_rows_of_several_right_hand_sides() -> None:
    def columns(body: Node) -> Node:
        return loop("k", M, body)

    total = accumulate(load("r", "k"), mul(load("L", "i", "j"), load("X", "j", "k")))
    solved = assign(load("X", "i", "k"), op("sub", load("B", "i", "k"), load("r", "k")))
    rows = [
        columns(assign(load("r", "k"), 0.0)),
        columns(loop("j", "i", total)),
        columns(solved),
    ]
    first = loop("m", M, assign(load("X", 0, "m"), load("B", 0, "m")))
    peeled = nest("rows", BUFFERS, first, steps(N, *rows, start=1))
    whole = nest("rows", BUFFERS, steps(N, *rows))
    assert normalise(peeled).body == normalise(whole).body
    assert_same(peeled, normalise(peeled))


def other_row() -> LoopNest:
    return solve("i", at(1))


def other_value() -> LoopNest:
    return solve("i", assign(load("x", 0), load("b", 0)))


def no_iterations() -> LoopNest:
    """Of a loop that is never entered nobody knows that it would be."""
    return solve("i", at(0), start=1, stop=1)


def scratch_goes_on() -> LoopNest:
    """x[0] = t does not change t; an iteration would."""
    body = [assign(load("x", "i"), load("t")), assign(load("t"), load("b", "i"))]
    return nest("goes on", BUFFERS, assign(load("t"), 3.0), assign(load("x", 0), load("t")),
                steps(N, *body, start=1))  # fmt: skip


def scratch_is_read_afterwards() -> LoopNest:
    body = [assign(load("t"), load("b", "i")), assign(load("x", "i"), mul(load("t"), load("t")))]
    first = assign(load("x", 0), mul(load("b", 0), load("b", 0)))
    last = loop("k", N, accumulate(load("x", "k"), load("t")))
    return nest("afterwards", BUFFERS, first, steps(N, *body, start=1), last)


def scratch_of_every_iteration_is_read_afterwards() -> LoopNest:
    body = [
        assign(load("u", "i"), load("b", "i")),
        assign(load("x", "i"), mul(load("u", "i"), load("u", "i"))),
    ]
    first = assign(load("x", 0), mul(load("b", 0), load("b", 0)))
    start = loop("k", N, assign(load("u", "k"), 1.0))
    last = loop("k", N, accumulate(load("x", "k"), load("u", "k")))
    return nest("each", BUFFERS, start, first, steps(N, *body, start=1), last)


def sums_with_initial_values() -> LoopNest:
    """Over no terms they are their initial value."""
    total = accumulate(load("x", "i"), load("L", "i", "j"), init=7.0)
    body = [loop("j", "i", total), assign(load("b", "i"), load("x", "i"))]
    return nest("init", BUFFERS, assign(load("b", 0), load("x", 0)), steps(N, *body, start=1))


@pytest.mark.parametrize(
    "example",
    [other_row, other_value, no_iterations, scratch_goes_on, scratch_is_read_afterwards,
     scratch_of_every_iteration_is_read_afterwards, sums_with_initial_values],
    ids=lambda example: example.__name__,
)  # fmt: skip
def test_what_an_iteration_would_not_do_stays_apart(example) -> None:
    whole = example()
    assert all(
        lp.start != Const(0) for lp in normalise(whole).loops() if lp.iterator == "i" and not lp.independent
    )
    assert_same(whole, normalise(whole))
