"""Loops that are special at their ends run in parts, which compute the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import Operand, accumulate, add, array, assign, load, loop, loops, nest, op
from nests.interpret import interpret, random_memory

from gnnperf.nests import Const, Loop, LoopNest, Node, Statement
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import touched
from gnnperf.nests.borders import SHORTEST, without_border_bounds, without_borders
from gnnperf.nests.ir import Expr, subexpressions, walk

N = SHORTEST + 3
BUFFERS = [
    array("x", N),
    array("y", N),
    array("A", 2, N),
    array("B", 2, N),
    array("t", transient=True, scope="local"),
]


def row(value: Expr, guard: Expr | None = None, stop: Operand = N, independent: bool = True) -> Loop:
    return loop("j", stop, assign(load("y", "j"), value, guard=guard), independent=independent)


def bounds_decided(node: Node) -> tuple[Node, ...]:
    one = nest("example", BUFFERS, node)
    made, buffers = without_border_bounds((node,), one.buffers)
    return same(one, nest("example", buffers.values(), *made))


def parts(node: Node) -> tuple[Node, ...]:
    one = nest("example", BUFFERS, node)
    return same(one, nest("example", BUFFERS, *without_borders((node,), one.buffers)))


def same(one: LoopNest, made: LoopNest) -> tuple[Node, ...]:
    """The nodes of `made`, which computes the same."""
    memory = random_memory(one, np.random.default_rng(1))
    expected, found = interpret(one, memory), interpret(made, memory)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    return made.body


def test_periodic_rows_are_an_element_and_a_loop() -> None:
    first, rest = parts(row(load("x", op("mod", op("sub", "j", 1), N))))
    assert first == assign(load("y", 0), load("x", N - 1))
    assert rest == loop(
        "j", N, assign(load("y", "j"), load("x", op("sub", "j", 1))), start=1, independent=True
    )


@pytest.mark.parametrize(
    ("place", "count"),
    [
        (op("select", op("gt", "j", 0), op("sub", "j", 1), N - 1), 2),
        (op("select", op("not", op("le", "j", 0)), op("sub", "j", 1), N - 1), 2),
        (op("select", op("eq", "j", 4), 0, "j"), 3),
        (op("select", op("and", op("ge", "j", 2), op("lt", "j", N - 2)), op("add", "j", 2), "j"), 3),
        (op("max", op("sub", "j", 2), 0), 2),
        (op("min", op("add", "j", 3), N - 1), 2),
        (op("mod", op("add", "j", 5), N), 2),
        (op("mod", op("mul", 2, "j"), N), 2),
        (op("mod", op("add", op("mul", 3, "j"), 2), N), 3),
        (op("sub", N - 1, op("max", op("sub", 3, "j"), 0)), 2),
        (simplify(op("abs", op("sub", "j", 3))), 2),
        (simplify(op("sub", N - 1, op("abs", op("sub", N - 3, "j")))), 2),
        (op("select", op("lt", "j", 4), op("sub", 3, "j"), op("sub", "j", 4)), 2),
    ],
)
def test_choices_of_places_are_made_ahead(place: Expr, count: int) -> None:
    made = parts(row(load("x", place)))
    assert len(made) == count
    assert not any(getattr(e, "name", "") in ("select", "max", "min", "mod") for n in made for e in values(n))


def test_around_what_a_loop_outside_moves_by_one_only_the_ends_are_apart() -> None:
    place = add(op("mod", "i", 2), "j")
    ahead = load("A", "i", op("mod", add(place, 1), N))
    row_of = loop("j", N - 1, assign(load("B", "i", place), ahead), independent=True)
    made = parts(loop("i", 2, row_of, independent=True))
    bounds = [(n.start, n.stop) for n in walk(made) if isinstance(n, Loop) and n.iterator == "j"]
    assert bounds == [(Const(0), Const(N - 2))] and len(made) == 2


def test_guards_and_values_are_decided_too() -> None:
    (only,) = parts(row(load("x", "j"), guard=op("ge", "j", 3)))
    assert isinstance(only, Loop) and only.start == Const(3)
    inner, last = parts(row(op("select", op("lt", "j", N - 1), load("x", op("add", "j", 1)), 0.0)))
    assert isinstance(inner, Loop) and inner.stop == Const(N - 1) and isinstance(last, Statement)


def test_only_the_innermost_of_several_loops_is_cut() -> None:
    moved = load("A", op("mod", op("add", "i", 1), 2), op("mod", op("add", "j", 1), N))
    made = parts(
        loop("i", 2, loop("j", N, assign(load("B", "i", "j"), moved), independent=True), independent=True)
    )
    assert [isinstance(n, Loop) and n.iterator for n in made] == ["i", "i"]


def test_windows_are_whole_where_all_of_them_is_inside() -> None:
    place = op("min", op("max", op("add", "j", "k"), 0), N - 1)
    window = loop("k", 2, accumulate(load("y", "j"), load("x", place), "max"), start=-1, independent=True)
    first, whole, *_, last = parts(loop("j", N, window, independent=True))
    assert load("x", op("add", "j", "k")) in values(whole)
    assert {type(first), type(last)} == {Loop} and not any(isinstance(n, Statement) for n in (first, last))


def test_windows_that_the_ends_reflect_are_whole_inside() -> None:
    beyond = op("abs", op("add", "j", "k"))
    place = simplify(op("sub", N - 1, op("abs", op("sub", N - 1, beyond))))
    window = loop("k", 2, accumulate(load("y", "j"), load("x", place), "max"), start=-1, independent=True)
    found = parts(loop("j", N, window, independent=True))
    (whole,) = (n for n in found if load("x", op("add", "j", "k")) in values(n))
    assert isinstance(whole, Loop) and whole.start == Const(1) and whole.stop in (Const(N - 2), Const(N - 1))


def test_windows_that_end_with_the_array_are_whole_inside() -> None:
    """Of y[j] = x[j - 1] + x[j] + x[j + 1], as far as there are such."""
    ends = op("max", 0, op("sub", 1, "j")), op("min", 3, op("sub", N + 1, "j"))
    term = accumulate(load("y", "j"), load("x", add(op("sub", "j", 1), "k")))
    window = loop("j", N, loop("k", ends[1], term, start=ends[0]))
    made = bounds_decided(window)
    bounds = [(n.start, n.stop) for n in walk(made) if isinstance(n, Loop) and n.iterator == "k"]
    assert bounds[1] == (Const(0), Const(3)) and len(bounds) == 3

    sums = accumulate(load("y", "j"), load("x", "k"))
    triangle = loop("j", N, loop("k", op("min", "j", N - 3), sums))
    assert bounds_decided(triangle) == (triangle,), "most of it is a triangle"
    in_turn = replace(window, independent=False)
    assert bounds_decided(in_turn) == (in_turn,)


def test_means_of_windows_have_scalars_of_their_own_in_every_part() -> None:
    term = accumulate(load("t"), load("x", add("j", "k")))
    mean = (
        assign(load("t"), 0.0),
        loop("k", op("min", 2, op("sub", N, "j")), term, start=op("max", -1, op("neg", "j"))),
        assign(load("y", "j"), op("mul", load("t"), 0.5)),
    )
    made = bounds_decided(loop("j", N, *mean))
    assert len(made) == 3 and len({name for n in made for name in touched(n)} - {"x", "y"}) == 3


def test_pairs_are_cut_only_where_one_side_has_no_other() -> None:
    def of_others(count: int) -> Loop:
        value = op("select", op("ne", "j", "k"), load("x", "k"), 0.0)
        inner = loop("k", count, accumulate(load("y", "j"), value), independent=True)
        return loop("j", N, inner, independent=True)

    assert parts(of_others(N)) == (of_others(N),)
    mixed, apart = parts(of_others(3))
    assert isinstance(mixed, Loop) and mixed.stop == Const(3) and load("x", "k") in values(apart)
    assert not any(getattr(e, "name", "") == "select" for e in values(apart))


def test_a_window_that_moves_with_a_loop_around_is_cut_nowhere() -> None:
    place = op("max", op("sub", "j", "k"), 0)
    window = loop("k", add("i", 2), accumulate(load("B", "i", "j"), load("x", place)), start="i")
    node = loops({"i": 2, "j": N}, window)
    assert parts(node) == (node,)


def test_scalars_of_an_iteration_are_in_all_parts() -> None:
    held = assign(load("t"), load("x", op("mod", op("add", "j", 1), N)))
    made = parts(loop("j", N, held, assign(load("y", "j"), load("t")), independent=True))
    assert [len(n.body) if isinstance(n, Loop) else 1 for n in made] == [2, 1, 1]


@pytest.mark.parametrize(
    "node",
    [
        row(load("x", op("mod", op("sub", "j", 1), N)), independent=False),
        row(load("x", op("mod", op("sub", "j", 1), N)), stop=SHORTEST - 1),
        row(load("x", op("mod", "j", 2))),  # more parts than are worth it
        row(op("select", op("gt", load("x", "j"), 0.0), 1.0, load("x", 0))),
    ],
)
def test_other_loops_stay_whole(node: Loop) -> None:
    assert parts(node) == (node,)


@given(st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]), st.booleans(), st.integers(-3, N + 3))
def test_every_comparison_turns_where_it_should(name: str, turned: bool, at: int) -> None:
    difference = op("sub", at, "j") if turned else op("sub", "j", at)
    parts(row(op("select", op(name, difference, 0), load("x", "j"), 2.0)))


def values(node: Node) -> list[Expr]:
    return [e for s in walk((node,)) if isinstance(s, Statement) for e in subexpressions(s.value)]
