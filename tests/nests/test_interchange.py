"""Sweeps: independent loops leave sequential ones where iterations never meet, and only there."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import accumulate, add, array, assign, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import differences

from gnnperf.nests import Buffer, Const, Expr, Load, Loop, LoopNest, Node, normalise
from gnnperf.nests.analysis import band
from gnnperf.nests.interchange import independent_outside

STEPS, COLUMNS = 5, 7


def sweep(*body: Node, buffers: list[Buffer], start: int = 1) -> LoopNest:
    """`for k in start..STEPS`, in order."""
    return nest("sweep", buffers, loop("k", STEPS, *body, start=start, independent=False))


def columns(statement: Node, start: int = 1, iterator: str = "i") -> Loop:
    """`for i`, without the cells at either end."""
    return loop(iterator, COLUMNS + 1 if start else COLUMNS + 2, statement, start=start)


def field(name: str, **options: bool) -> Buffer:
    return array(name, STEPS, COLUMNS + 2, **options)


def is_hoisted(example: LoopNest) -> bool:
    (top,) = (independent_outside(n, example.buffers) for n in example.body)
    assert isinstance(top, Loop)
    return top.independent


def assert_same_results(before: LoopNest) -> None:
    after = normalise(before)
    memory = random_memory(before, np.random.default_rng(0))
    expected = interpret(before, memory)
    assert not differences(expected, interpret(after, memory))
    assert not differences(expected, interpret(after, memory, backwards=True)), "a loop is not independent"


# --------------------------------------------------------------------------- what moves


def before(name: str, shift: int = 0, iterator: str = "i") -> Load:
    return load(name, op("sub", "k", 1), add(iterator, shift))


def test_a_sweep_over_columns_goes_column_by_column() -> None:
    example = sweep(
        columns(assign(load("c", "k", "i"), op("div", load("a", "k", "i"), before("b")))),
        columns(accumulate(load("b", "k", "j"), mul(load("c", "k", "j"), before("a", 0, "j"))), iterator="j"),
        buffers=[field("a"), field("b"), field("c")],
    )
    (node,) = normalise(example).body
    stack = band(node)
    assert [lp.independent for lp in stack.loops] == [True, False], "columns outside, steps inside"
    assert len(stack.statements) == 2
    assert_same_results(example)


def test_scratch_of_one_step_becomes_a_scalar() -> None:
    """Written in every step before it is read: no array is left of it."""
    example = sweep(
        columns(assign(load("t", "i"), mul(load("a", "k", "i"), before("b")))),
        columns(assign(load("b", "k", "i"), add(mul(load("t", "i"), load("t", "i")), load("t", "i")))),
        columns(assign(load("a", "k", "i"), op("sub", load("t", "i"), before("a")))),
        buffers=[field("a"), field("b"), array("t", COLUMNS + 2, transient=True)],
    )
    tidy = normalise(example)
    assert all(b.scope == "local" for b in tidy.buffers.values() if b.transient)
    assert_same_results(example)


def test_scratch_that_one_step_leaves_to_the_next_stays_an_array() -> None:
    example = sweep(
        columns(assign(load("b", "k", "i"), load("t", "i"))),
        columns(assign(load("t", "i"), add(load("a", "k", "i"), load("b", "k", "i")))),
        buffers=[field("a"), field("b"), array("t", COLUMNS + 2)],
    )
    scratch = LoopNest(
        "carried",
        example.buffers | {"t": array("t", COLUMNS + 2, transient=True)},
        (columns(assign(load("t", "i"), 0.5)), *example.body),
    )
    assert any(b.shape for b in normalise(scratch).buffers.values() if b.transient)
    assert_same_results(scratch)


@pytest.mark.parametrize("shift", [-1, 1])
def test_neighbours_of_the_step_before_keep_steps_outside(shift: int) -> None:
    example = sweep(columns(assign(load("a", "k", "i"), before("a", shift))), buffers=[field("a")])
    assert not is_hoisted(example)
    assert_same_results(example)


def test_neighbours_of_another_loop_keep_steps_outside() -> None:
    example = sweep(
        columns(assign(load("a", "k", "i"), before("b"))),
        columns(assign(load("b", "k", "i"), load("a", "k", add("i", 1)))),
        buffers=[field("a"), field("b")],
    )
    assert not is_hoisted(example)
    assert_same_results(example)


def test_what_an_earlier_step_left_in_scratch_is_not_recomputed() -> None:
    """The stored part shrinks from step to step; what lies beyond it is older."""
    stored = loop("i", op("sub", COLUMNS, "k"), assign(load("t", "i"), load("a", "k", "i")))
    copied = loop("i", COLUMNS, assign(load("b", "k", "i"), load("t", "i")))
    scratch = array("t", COLUMNS + 2, transient=True)
    assert_same_results(sweep(stored, copied, buffers=[field("a"), field("b"), scratch], start=0))


def test_a_sum_over_columns_keeps_steps_outside() -> None:
    example = sweep(
        columns(accumulate(load("s", "k"), load("a", "k", "i"))),
        columns(assign(load("a", "k", "i"), mul(load("s", op("sub", "k", 1)), before("a")))),
        buffers=[field("a"), array("s", STEPS)],
    )
    assert not is_hoisted(example)
    assert_same_results(example)


def test_products_of_matrices_stay_whole() -> None:
    """Every row of x times the step's weights: row by row, the weights would be read again for each."""
    n = COLUMNS
    product = accumulate(load("y", "i", "j"), mul(load("x", "i", "m"), load("w", "k", "m", "j")))
    clear, back = assign(load("y", "i", "j"), Const(0)), assign(load("x", "i", "j"), load("y", "i", "j"))
    rows = [loop("i", n, loop("j", n, body)) for body in (clear, back)]
    rows.insert(1, loop("i", n, loop("j", n, loop("m", n, product))))
    example = sweep(*rows, buffers=[array("w", STEPS, n, n), array("x", n, n), array("y", n, n)])
    assert not is_hoisted(example)
    assert_same_results(example)


def test_columns_that_the_step_bounds_stay_inside() -> None:
    triangle = loop("i", "k", assign(load("a", "k", "i"), before("a")))
    example = sweep(triangle, buffers=[field("a")])
    assert not is_hoisted(example)
    assert_same_results(example)


def test_steps_that_the_data_bounds_are_not_moved_inside() -> None:
    """The number of steps is read from what the sweep writes."""
    body = columns(assign(load("a", "k", "i"), add(before("a"), load("n"))))
    last = loop("k", load("n"), body, start=1, independent=False)
    count = loop("i", 1, assign(load("n"), load("n")))
    example = nest("sweep", [field("a"), array("n", dtype="int64")], last)
    assert is_hoisted(example)
    stored = Loop(last.iterator, last.start, last.stop, (body, count), independent=False)
    assert not is_hoisted(nest("sweep", [field("a"), array("n", dtype="int64")], stored))


# --------------------------------------------------------------------------- random sweeps


def random_sweep(rng: Random) -> LoopNest:
    """Statements over one or two fields and two scratch arrays, with neighbours in both directions."""
    buffers = [field("x"), field("y"), array("t", COLUMNS + 2, transient=True), field("u", transient=True)]
    body: list[Node] = []
    written: set[str] = set()
    for number in range(rng.randint(1, 4)):
        iterator = f"i{number}"
        target = rng.choice("xytu")
        known = ["x", "y", *sorted(written - {target})]
        cells = [_cell(rng, rng.choice(known), iterator, target) for _ in range(rng.randint(1, 3))]
        value: Expr = mul(0.25, cells[0])
        for cell in cells[1:]:
            value = op(rng.choice(("add", "sub", "max")), value, cell)
        where = load("t", iterator) if target == "t" else load(target, "k", iterator)
        make = accumulate if target in ("x", "y") and rng.random() < 0.3 else assign
        body.append(columns(make(where, value), start=int(target in "xy"), iterator=iterator))
        written |= {target} & {"t", "u"}
    return sweep(*body, buffers=buffers)


def _cell(rng: Random, name: str, iterator: str, target: str) -> Load:
    """A cell of this step or of the one before, and maybe beside the iterator's. The fields are only read
    in this step where nothing of them is stored by the same loop."""
    at = add(iterator, rng.choice((0, 0, 0, -1, 1)) if target in "xy" else 0)
    if name == "t":
        return load("t", at)
    earlier = name == target or (name in "xy" and rng.random() < 0.5)
    return load(name, op("sub", "k", 1) if earlier else "k", at)


@given(st.randoms(use_true_random=False))
def test_sweeps_compute_the_same(rng: Random) -> None:
    assert_same_results(random_sweep(rng))
