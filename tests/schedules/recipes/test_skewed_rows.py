"""Rows whose elements wait for each other go on side by side; each element finds what it would have found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nests.examples import add, array, assign, expr, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.nests import Annotation, Expr, Loop, LoopNest, Op, Statement
from gnnperf.nests.affine import simplify
from gnnperf.schedules.recipes import DEFAULTS, apply, emit, skewed_rows
from gnnperf.schedules.recipes.skewed_rows import MANY_ROWS, share_rows, skew_rows

ROWS = MANY_ROWS
N, M = 21, 134
"""Rows, of which some are left over; elements."""


def over_rows(*statements: Statement, rows: bool = False, elements: bool = False) -> LoopNest:
    """rows, elements: whether those loops are independent."""
    arrays = [array("A", N, M), array("B", N, M), array("row", M), array("top"), array("column", N)]
    arrays += [array("x", scope="local"), array("at", N, dtype="int64")]
    inner = loop("j", M - 4, *statements, start=4, independent=elements)
    return nest("example", arrays, loop("i", N - 2, inner, start=2, independent=rows))


def at(rows: int, elements: int, name: str = "A") -> Expr:
    return load(name, add("i", rows), add("j", elements))


def update(*offsets: tuple[int, int]) -> Statement:
    return assign(load("A", "i", "j"), mul(0.2, add(*(at(*offset) for offset in offsets), at(0, 0, "B"))))


def is_skewed(example: LoopNest) -> bool:
    return any(lp.step == ROWS for lp in skew_rows(example).loops())


def same(example: LoopNest) -> bool:
    memory = random_memory(example, np.random.default_rng(7))
    before, after = interpret(example, memory), interpret(skew_rows(example), memory)
    return all(np.allclose(before[name], after[name], rtol=1e-12) for name in memory)


@pytest.mark.parametrize(
    ("offsets", "behind"),
    [
        pytest.param([(-1, 0), (0, -1), (-1, -1)], 1, id="alignment of two sequences"),
        pytest.param([(0, -1), (-1, -1)], 0, id="nothing straight above"),
        pytest.param([(-1, 0), (1, 0), (0, -1), (0, 1)], 1, id="five points in place"),
        pytest.param([(-1, 1), (1, -1), (0, -1)], 2, id="nine points in place"),
        pytest.param([(-1, 3), (0, -2)], 4, id="far ahead"),
        pytest.param([(-2, 3), (0, -1)], 2, id="far ahead, two rows above"),
    ],
)
def test_each_row_is_as_far_behind_as_it_must_be(offsets: list[tuple[int, int]], behind: int) -> None:
    example = over_rows(update(*offsets))
    assert same(example)
    (together,) = (lp for lp in skew_rows(example).loops() if lp.iterator == "j" and len(lp.body) == ROWS)
    last = together.body[-1]
    assert isinstance(last, Statement)
    assert simplify(op("sub", expr("j"), last.target.indices[1])) == expr(behind * (ROWS - 1))


@given(st.sets(st.tuples(st.integers(-2, 2), st.integers(-4, 4)), min_size=1, max_size=5), st.booleans())
@settings(max_examples=60, deadline=None)
def test_elements_are_what_they_were(offsets: set[tuple[int, int]], in_one_row: bool) -> None:
    if in_one_row:
        loads = [load("row", add("j", elements)) for _, elements in sorted(offsets)]
        example = over_rows(assign(load("row", "j"), mul(0.2, add(*loads, at(0, 0, "B")))))
    else:
        example = over_rows(update(*sorted(offsets)))
    assert same(example)


def adding(value: Expr) -> Statement:
    return assign(load("A", "i", "j"), add(value, at(0, -1)))


TOTAL = assign(load("top"), add(load("top"), at(0, 0)))


def carrying(first: Expr) -> LoopNest:
    """Each element is made of the last one, which is kept in a local."""
    example = over_rows(
        assign(load("x"), mul(0.4, add(load("x"), at(-1, 0)))), assign(load("A", "i", "j"), load("x"))
    )
    (rows,) = example.body
    assert isinstance(rows, Loop)
    return replace(example, body=(replace(rows, body=(assign(load("x"), first), *rows.body)),))


def beginning(
    *first: Statement, offsets: tuple[tuple[int, int], ...] = ((-1, 0), (0, -1), (-1, -1))
) -> LoopNest:
    example = over_rows(update(*offsets))
    (rows,) = example.body
    assert isinstance(rows, Loop)
    return replace(example, body=(replace(rows, body=(*first, *rows.body)),))


BORDER = beginning(assign(load("A", "i", 3), mul(0.5, add(load("A", add("i", -1), 3), load("A", "i", 9)))))
BELOW = beginning(assign(load("A", "i", 9), load("B", "i", 9)), offsets=((-1, 0), (0, -1)))
LOCAL = over_rows(
    assign(load("x"), mul(0.5, at(-1, 0))),
    assign(load("A", "i", "j"), add(load("x"), at(0, -1))),
)


def one_row(*border: int) -> LoopNest:
    """The same row again and again; begins by changing elements of it, which the first ones read."""
    elements = [add("j", offset) for offset in (-2, -1, 0)]
    value = mul(0.2, add(*(load("row", e) for e in elements), at(0, 0, "B")))
    begin = [assign(load("row", n), mul(0.5, add(load("row", n), load("B", "i", n)))) for n in border]
    inner = loop("j", M - 4, assign(load("row", "j"), value), start=4, independent=False)
    rows = loop("i", N - 2, *begin, inner, start=2, independent=False)
    return replace(over_rows(), body=(rows,))


ONE_ROW = one_row(3, 2)
SCATTERED = over_rows(
    assign(load("A", "i", add("j", 1)), add(at(0, 1), mul(0.4, at(0, 0)))),
    assign(load("A", add("i", 1), add("j", -1)), add(at(1, -1), mul(0.2, at(0, 0)))),
)
FIRST = over_rows(adding(load("A", "i", 3)))
ANY_ROW = over_rows(
    assign(
        load("A", load("at", "i"), "j"), add(at(0, 0, "B"), load("A", load("at", add("i", 1)), add("j", -1)))
    )
)
LARGEST = over_rows(
    update((-1, 0), (0, -1)),
    Statement(load("top"), at(0, 0), "max"),
    Statement(load("column", "i"), at(0, 0), "add"),
)


CARRYING = carrying(load("A", "i", 3))


@pytest.mark.parametrize(
    "example",
    [LOCAL, SCATTERED, FIRST, ANY_ROW, LARGEST, CARRYING, BORDER, BELOW, ONE_ROW],
    ids=["local", "scattered", "first", "any row", "largest", "carrying", "border", "below", "one row"],
)
def test_more_than_one_statement(example: LoopNest) -> None:
    assert is_skewed(example)
    assert same(example)


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(over_rows(update((-1, 0), (-1, 1)), elements=True), id="elements do not wait"),
        pytest.param(over_rows(update((0, -1)), rows=True), id="rows are independent"),
        pytest.param(over_rows(update((-1, 0), (0, 1))), id="only reads what is overwritten later"),
        pytest.param(over_rows(update((-1, 4), (0, -1))), id="too far ahead"),
        pytest.param(over_rows(adding(load("A", add("i", -1), 5))), id="one column of the row above"),
        pytest.param(over_rows(adding(load("A", load("at", "i"), 5))), id="wherever data says"),
        pytest.param(over_rows(update((-1, 0), (0, -1)), TOTAL), id="a total that is read"),
        pytest.param(
            over_rows(
                update((-1, 0), (0, -1)),
                Statement(load("top"), at(0, 0), "max"),
                Statement(load("top"), at(0, 0), "add"),
            ),
            id="two reductions of one place",
        ),
        pytest.param(carrying(load("A", add("i", -1), 9)), id="begins with what is above"),
        pytest.param(one_row(8), id="begins by overwriting what rows above need late"),
        pytest.param(carrying(load("x")), id="carries on from the row above"),
        pytest.param(
            beginning(assign(load("A", "i", 9), load("B", "i", 9)), offsets=((1, 0), (0, -1))),
            id="begins by overwriting what the row above reads",
        ),
        pytest.param(
            beginning(assign(load("A", "i", 3), load("A", add("i", -1), 9))),
            id="a border made of the row above",
        ),
    ],
)  # fmt: skip
def test_left_as_it_is(example: LoopNest) -> None:
    assert skew_rows(example) == example


def test_triangles_and_short_rows_are_left() -> None:
    def example(stop: Expr | int) -> LoopNest:
        inner = loop("j", stop, update((-1, 0), (0, -1)), start=4, independent=False)
        return nest(
            "example", [array("A", N, M), array("B", N, M)], loop("i", N, inner, start=2, independent=False)
        )

    assert is_skewed(example(M - 4))
    assert not is_skewed(example(12))
    assert not is_skewed(example(Op("add", (add("i", 0), add("i", 30)))))


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several, which also share little."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(skewed_rows, "LEAST_SHARED", 1)


PIPELINED = {
    "alignment": over_rows(update((-1, 0), (0, -1), (-1, -1))),
    "nine_points": over_rows(update((-1, 1), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 0))),
    "nothing_straight_above": over_rows(update((0, -1), (-1, -1))),
    "one_row": over_rows(assign(load("row", "j"), mul(0.2, add(load("row", add("j", -1)), at(0, 0, "B"))))),
    "scattered": SCATTERED,
    "largest": LARGEST,
    "carrying": CARRYING,
    "border": BORDER,
    "begins_with_what_rows_above_need": ONE_ROW,
}


@pytest.mark.usefixtures("threads")
def test_threads_have_rows_in_turn(tmp_path: Path) -> None:
    scheduled = {name: apply(DEFAULTS[0], example) for name, example in PIPELINED.items()}
    functions = {name: emit(found, name) for name, found in scheduled.items()}
    for function in functions.values():
        assert "Pipeline pipeline" in function.source
        assert f"i_rows_0 += {ROWS}" in function.source
    library = build(list(functions.values()), tmp_path)
    for name, example in PIPELINED.items():
        memory = random_memory(example, np.random.default_rng(3))
        expected = interpret(example, memory)
        for _ in range(6):  # threads that do not wait are often lucky
            assert not differences(expected, call(library, functions[name], scheduled[name], memory))


def test_one_thread_has_all_rows_where_they_are_few_or_the_recipe_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    example = PIPELINED["alignment"]
    assert "Pipeline" not in emit(apply(DEFAULTS[0], example), "example").source
    monkeypatch.setattr(skewed_rows, "LEAST_SHARED", 1)
    source = emit(apply(replace(DEFAULTS[0], parallel="none"), example), "example").source
    assert "Pipeline" not in source
    assert f"i_rows_0 += {ROWS}" in source


def test_threads_that_share_a_loop_around_rows_do_not_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skewed_rows, "LEAST_SHARED", 1)
    (rows,) = PIPELINED["alignment"].body
    planes = replace(PIPELINED["alignment"], body=(loop("p", 3, rows, annotation=Annotation("parallel")),))
    assert share_rows(planes) == planes
    alone = replace(planes, body=(loop("p", 3, rows),))
    assert share_rows(alone) != alone
