"""Of two rows, of which one becomes the other, one is kept; every element is made of what it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nests.examples import add, array, assign, expr, load, loop, mul, nest
from nests.interpret import interpret, random_memory

from gnnperf.frontends.dace.rolling_rows import roll_rows
from gnnperf.nests import Expr, LoopNest, Node, Statement
from gnnperf.nests.analysis import touched
from gnnperf.nests.ir import Loop
from gnnperf.nests.names import Names

N, M = 7, 23
FIRST = 4
"""The element that a row's first iteration stores."""


def above(offset: int) -> Expr:
    return load("prev", add("j", offset))


def before(offset: int) -> Expr:
    return load("cur", add("j", -offset))


def stored(*terms: Expr) -> Statement:
    return assign(load("cur", "j"), mul(0.3, add(*terms, load("B", "i", "j"))))


def border(number: int, value: Expr | float = 0.5) -> Statement:
    return assign(load("cur", number), value)


BORDERS = tuple(border(n, load("B", "i", n)) for n in range(FIRST))
COPY = loop("k", M - 2, assign(load("prev", "k"), load("cur", "k")))


def rows(
    *elements: Node,
    begin: Sequence[Node] = BORDERS,
    copy: Node = COPY,
    after: Sequence[Node] = (),
    **loop_is: bool,
) -> LoopNest:
    inner = loop("j", M - 2, *elements, start=FIRST, independent=False)
    arrays = [
        array("prev", M), array("cur", M, transient=True), array("B", N, M), array("out", N),
        array("x", scope="local", transient=True), array("row", M),
    ]  # fmt: skip
    body = loop("i", N, *begin, inner, copy, *after, independent=False)
    filled = loop("f", M, assign(load("cur", "f"), mul(0.1, load("row", "f"))))
    return nest("rows", arrays, filled, body)


def rolled(example: LoopNest, live_after: Sequence[str] = ()) -> LoopNest:
    buffers = dict(example.buffers)
    body = roll_rows(example.body, buffers, live_after, Names.of(example).fresh)
    return replace(example, body=body, buffers=buffers)


def is_one_row(example: LoopNest) -> bool:
    made = rolled(example)
    (_, loop_over_rows) = (n for n in made.body if isinstance(n, Loop))
    stores = {s.target.buffer for s in loop_over_rows.body if isinstance(s, Statement)}
    return (
        made != example and "cur" not in stores and sum(isinstance(n, Loop) for n in loop_over_rows.body) == 1
    )


def same(example: LoopNest) -> bool:
    memory = random_memory(example, np.random.default_rng(5))
    found, expected = interpret(rolled(example), memory), interpret(example, memory)
    return all(np.array_equal(found[name], expected[name]) for name in memory)


@given(
    st.sets(st.integers(-4, 2), min_size=1, max_size=4),
    st.sets(st.integers(1, FIRST), min_size=1, max_size=2),
    st.sets(st.integers(0, FIRST - 1)),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_every_element_is_what_it_was(
    offsets: set[int], back: set[int], begun: set[int], again: bool
) -> None:
    """What a row does not begin with is what `cur` held before all rows."""
    terms = [above(o) for o in sorted(offsets)] + [before(b) for b in sorted(back)]
    begin = [border(n, load("B", "i", n)) for n in sorted(begun)]
    elements: list[Node] = [stored(*terms)]
    if again:
        elements.append(assign(load("cur", "j"), add(load("cur", "j"), above(0), above(-1))))
    example = rows(*elements, begin=begin)
    assert is_one_row(example)
    assert same(example)


RECURRENCE = stored(above(0), above(-1), before(1))


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(rows(stored(above(0), before(1))), id="straight above alone"),
        pytest.param(
            rows(RECURRENCE, begin=[border(0, load("prev", 0)), border(1, load("cur", 0)), *BORDERS[2:]]),
            id="begins with what is above and before",
        ),
        pytest.param(
            rows(
                assign(load("x"), above(-2)),
                stored(load("x"), before(1)),
                assign(load("B", "i", "j"), load("cur", "j")),
            ),
            id="more than one statement",
        ),
        pytest.param(
            rows(RECURRENCE, loop("q", 2, assign(load("B", "i", "q"), add(above(-1), load("cur", "j"))))),
            id="a loop inside",
        ),
        pytest.param(
            rows(RECURRENCE, after=[assign(load("out", "i"), load("prev", M - 3))]),
            id="read once it is copied",
        ),
    ],
)
def test_one_row_is_kept(example: LoopNest) -> None:
    assert is_one_row(example)
    assert same(example)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(rows(stored(above(-1), above(0), above(1))), id="elements do not wait for each other"),
        pytest.param(rows(stored(above(-5), before(1)), begin=BORDERS), id="too far back"),
        pytest.param(rows(stored(load("prev", 3), before(1))), id="one element for all"),
        pytest.param(rows(assign(load("prev", "j"), 1.0), RECURRENCE), id="writes the row above, too"),
        pytest.param(
            rows(RECURRENCE, begin=[*BORDERS, border(FIRST + 3)]), id="begins with an element of the loop"
        ),
        pytest.param(
            rows(RECURRENCE, begin=[*BORDERS[:3], border(3, load("prev", 2))]),
            id="a border made of one that is gone",
        ),
        pytest.param(
            rows(RECURRENCE, copy=loop("k", M, assign(load("prev", "k"), load("cur", "k")))),
            id="copies what no row stores",
        ),
        pytest.param(
            rows(
                RECURRENCE,
                copy=loop("k", M - 2, assign(load("prev", "k"), load("cur", "k")), start=FIRST + 1),
            ),
            id="copies a part",
        ),
        pytest.param(
            rows(RECURRENCE, copy=loop("k", M - 2, assign(load("prev", "k"), load("cur", add("k", 1))))),
            id="shifts",
        ),
        pytest.param(
            rows(RECURRENCE, after=[assign(load("out", "i"), load("cur", 9))]), id="reads it after the copy"
        ),
        pytest.param(
            rows(Statement(load("cur", "j"), above(-1), guard=expr("j")), stored(before(1))),
            id="under a condition",
        ),
    ],
)
def test_two_rows_stay(example: LoopNest) -> None:
    assert rolled(example) == example


def test_a_row_that_is_read_later_stays() -> None:
    example = rows(RECURRENCE)
    assert rolled(example, live_after=["cur"]) == example
    assert "cur" in touched(rolled(example).body[0])
