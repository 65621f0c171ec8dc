"""Scratch arrays that are filled in pieces are what they are filled with, where they are read."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.nests import Const, Expr, LoopNest, Node, Statement, normalise
from gnnperf.nests.borders import steps_without_borders, without_borders_or_rows
from gnnperf.nests.combine import combine, from_copy_to_copy
from gnnperf.nests.coverage import flow
from gnnperf.nests.forward import forward_substitute
from gnnperf.nests.ir import Symbol, subexpressions, walk
from gnnperf.schedules.recipes import Recipe, apply, emit

N, M = 10, 12
BUFFERS = [
    array("x", N), array("y", N), array("A", N, M), array("B", N, M),
    array("t", N, transient=True), array("s", N, transient=True),
    array("T", N, M, transient=True), array("S", N, M, transient=True),
]  # fmt: skip
REST = loop("i", N, assign(load("t", "i"), load("x", add("i", -1))), start=1)
FIRST = assign(load("t", 0), load("x", N - 1))
READ = loop("i", N, assign(load("y", "i"), mul(2.0, load("t", "i"))))


def substituted(*body: Node, recompute: bool = True) -> tuple[Node, ...]:
    one = nest("example", BUFFERS, *body)
    found = forward_substitute(one.body, one.buffers, recompute=recompute)
    memory = random_memory(one, np.random.default_rng(0))
    assert not differences(interpret(one, memory), interpret(nest("example", BUFFERS, *found), memory))
    return found


@pytest.mark.parametrize("pieces", [(REST, FIRST), (FIRST, REST)])
def test_what_is_moved_around_the_ends_is_a_remainder(pieces: tuple[Node, ...]) -> None:
    place = op("mod", op("add", "i", N - 1), N)
    assert substituted(*pieces, READ) == (loop("i", N, assign(load("y", "i"), mul(2.0, load("x", place)))),)


def test_other_pieces_are_a_choice() -> None:
    """An array with a border of zeros."""
    inside = loop("i", N - 1, assign(load("t", "i"), load("x", "i")), start=1)
    ends = assign(load("t", 0), 0.0), assign(load("t", N - 1), 0.0)
    chosen = op("select", op("eq", "i", 0), 0.0, op("select", op("eq", "i", N - 1), 0.0, load("x", "i")))
    assert substituted(inside, *ends, READ) == (loop("i", N, assign(load("y", "i"), mul(2.0, chosen))),)


def test_choices_among_what_others_hand_on_are_for_recipes_to_make() -> None:
    source = loop("i", N, assign(load("s", "i"), op("sqrt", load("x", "i"))))
    moved = op("sub", load("s", add("i", 1)), load("s", add("i", -1)))
    inside = loop("i", N - 1, assign(load("t", "i"), moved), start=1)
    ends = assign(load("t", 0), 0.0), assign(load("t", N - 1), 0.0)
    assert substituted(source, inside, *ends, READ, recompute=False) == (source, inside, *ends, READ)
    assert len(substituted(source, inside, *ends, READ)) == 1


def test_what_is_written_again_is_not_read() -> None:
    """Zeros that are filled inside, all of them and only the inside read."""
    zeros = loop("i", N, assign(load("t", "i"), 0.0))
    inside = loop("i", N - 1, assign(load("t", "i"), load("x", "i")), start=1)
    is_inside = op("and", op("ge", "i", 1), op("lt", "i", N - 1))
    chosen = op("select", is_inside, load("x", "i"), 0.0)
    assert substituted(zeros, inside, READ) == (loop("i", N, assign(load("y", "i"), mul(2.0, chosen))),)
    within = loop("i", N - 2, assign(load("y", "i"), load("t", "i")), start=2)
    assert substituted(zeros, inside, within) == (
        loop("i", N - 2, assign(load("y", "i"), load("x", "i")), start=2),
    )


@pytest.mark.parametrize(
    "body",
    {
        "an element is missing": (REST, READ),
        "read between": (REST, READ, FIRST, loop("i", N, assign(load("x", "i"), load("t", "i")))),
        "the source has changed": (REST, assign(load("x", N - 1), 1.0), FIRST, READ),
        "under a condition": (REST, assign(load("t", 0), 1.0, guard=op("lt", load("x", 0), 9.0)), READ),
        "a sum": (REST, FIRST, accumulate(load("t", 3), 1.0), READ),
        "what a piece reads is its own": (REST, assign(load("t", 0), load("t", 1)), READ),
    }.values(),
)  # fmt: skip
def test_others_stay(body: tuple[Node, ...]) -> None:
    one = nest("example", BUFFERS, *body)
    assert any(
        "t" in str(n.target)
        for n in walk(forward_substitute(one.body, one.buffers))
        if isinstance(n, Statement)
    )


def test_boxes_beside_each_other_are_one_that_is_written() -> None:
    one = assign(load("T", "i", "j"), 1.0)
    rows, columns = ((0, 4), (4, N)), ((0, 5), (5, M))
    quarters = [loop("i", b, loop("j", d, one, start=c), start=a) for (a, b) in rows for (c, d) in columns]
    reading = loop("i", N, loop("j", M, assign(load("A", "i", "j"), load("T", "i", "j"))))
    assert "T" not in flow((*quarters, reading)).exposed
    assert "T" in flow((*quarters[1:], reading)).exposed


def rolled(name: str, target: str, by: int) -> list[Node]:
    """Rows move by so many places, as `np.roll` has it."""
    moved, around = (op("sub", "i", by), op("sub", add("i", N), by))
    return [
        loop("i", N, loop("j", M, assign(load(target, "i", "j"), load(name, moved, "j"))), start=by),
        loop("i", by, loop("j", M, assign(load(target, "i", "j"), load(name, around, "j")))),
    ]


def test_periodic_steps_go_from_copy_to_copy() -> None:
    mirrored = load("T", "i", op("sub", M - 1, "j"))
    update = loop("i", N, loop("j", M, accumulate(load("A", "i", "j"), mul(0.5, mirrored))))
    over_time = loop("k", 6, *rolled("A", "T", 2), update, independent=False)
    whole = normalise(nest("example", BUFFERS, over_time))
    after = from_copy_to_copy(whole)
    assert after is not None and "T" not in {s.target.buffer for s in after.statements()}
    memory = random_memory(whole, np.random.default_rng(1))
    assert not differences(interpret(whole, memory), interpret(after, memory))


def box_by_box(chance: random.Random, rows: tuple[int, int], columns: tuple[int, int]) -> list[Node]:
    """Nests that fill a box of T: cut in two again and again."""
    (a, b), (c, d) = rows, columns
    if chance.random() < 0.6 and b - a > 1:
        cut = chance.randint(a + 1, b - 1)
        return box_by_box(chance, (a, cut), columns) + box_by_box(chance, (cut, b), columns)
    if chance.random() < 0.4 and d - c > 1:
        cut = chance.randint(c + 1, d - 1)
        return box_by_box(chance, rows, (c, cut)) + box_by_box(chance, rows, (cut, d))
    moved = chance.randint(-a, N - b), chance.randint(-c, M - d)
    around = chance.choice([None, -N, N])
    if around and a + 1 + around >= 0 and b + 1 + around <= N:
        moved = around + 1, 0
    value: Expr = load(chance.choice("AB"), add("i", moved[0]), add("j", moved[1]))
    value = chance.choice([value, value, mul(0.5, value), Const(0.25)])
    return [loop("i", b, loop("j", d, assign(load("T", "i", "j"), value), start=c), start=a)]


def random_pieces(seed: int) -> LoopNest:
    chance = random.Random(seed)
    filling = box_by_box(chance, (0, N), (0, M))
    chance.shuffle(filling)
    if chance.random() < 0.3:  # some of them again
        filling += box_by_box(chance, (chance.randint(0, 3), chance.randint(6, N)), (chance.randint(0, 3), M))
    if chance.random() < 0.3:
        filling = rolled(chance.choice("AB"), "T", chance.randint(1, 4))
    target = chance.choice("AB")
    read = load("T", op("sub", N - 1, "i") if chance.random() < 0.2 else "i", "j")
    first = loop("i", N, loop("j", M, assign(load("S", "i", "j"), mul(0.5, read))))
    change = accumulate if chance.random() < 0.5 else assign
    second = loop("i", N, loop("j", M, change(load(target, "i", "j"), add(0.1, load("S", "i", "j")))))
    body = [*filling, first, second]
    if chance.random() < 0.5:
        body = [loop("k", chance.randint(4, 7), *body, independent=False)]
    return nest("example", BUFFERS, *body)


def test_whatever_the_pieces_are_the_results_are_the_same(tmp_path: Path) -> None:
    """In normal form, combined, without borders, and compiled."""
    wholes = [random_pieces(seed) for seed in range(120)]
    normal = [normalise(whole) for whole in wholes]
    joined = [n for n in normal if "T" not in {s.target.buffer for s in n.statements()}]
    assert 40 < len(joined) < 120
    recipes = [Recipe(order="row", register_p=2, combine=how) for how in ("", "inline")]
    functions = [
        emit(apply(recipe, n), f"f{at}_{number}")
        for at, n in enumerate(normal[:60]) for number, recipe in enumerate(recipes)
    ]  # fmt: skip
    library = build(functions, tmp_path)
    for at, (whole, normed) in enumerate(zip(wholes, normal, strict=True)):
        memory = random_memory(whole, np.random.default_rng(at))
        expected = interpret(whole, memory)
        inlined = combine("inline", normed)
        apart = [
            replace(n, body=without_borders_or_rows(steps_without_borders(n.body, n.buffers), n.buffers))
            for n in (normed, inlined)
        ]
        for backwards in (False, True):
            for found in (normed, inlined, *apart):
                assert not differences(expected, interpret(found, memory, backwards)), at
        for function in functions[2 * at : 2 * at + 2]:
            assert not differences(expected, call(library, function, normed, memory)), at


def test_subscripts_are_simple() -> None:
    (one,) = substituted(REST, FIRST, READ)
    places = [e for s in walk((one,)) if isinstance(s, Statement) for e in subexpressions(s.value)]
    assert sum(e == Symbol("i") for e in places) == 1 and not any(e == Const(0) for e in places)
