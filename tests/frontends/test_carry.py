"""What one iteration stores and the next one reads goes on in a scalar, where that is all it is."""

from __future__ import annotations

import numpy as np
import pytest
from nests.examples import add, array, assign, load, loop, mul, nest, op
from nests.interpret import interpret

from gnnperf.frontends.dace.carry import carry_in_scalars
from gnnperf.nests import Loop, LoopNest, Node
from gnnperf.nests.ir import loads, reads, walk

PREVIOUS = load("y", op("sub", "j", 1))
STEP = assign(load("y", "j"), add(mul(0.5, PREVIOUS), load("x", "j")))


def carried(*body: Node, start: int = 1) -> tuple[LoopNest, LoopNest]:
    """A sequential loop over y and x of twelve elements, and what becomes of it."""
    around = loop("j", 12, *body, start=start, independent=False)
    before = nest("steps", [array(name, 14) for name in "xyz"], around)
    buffers = dict(before.buffers)
    after = carry_in_scalars(before.body, buffers, lambda name: name)
    return before, LoopNest("steps", buffers, after)


def test_the_last_result_is_a_scalar() -> None:
    before, after = carried(STEP, assign(load("z", "j"), load("y", "j")))
    assert "y_last" in after.buffers
    (inside,) = after.loops()
    assert PREVIOUS not in [ld for n in walk(inside.body) for ld in reads(n)]  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    memory = {name: rng.random(14) for name in "xyz"}
    for name, values in interpret(before, memory).items():
        np.testing.assert_array_equal(interpret(after, memory)[name], values)


def test_several_arrays_may_have_a_last_result() -> None:
    other = assign(load("z", "j"), add(load("z", op("sub", "j", 1)), load("y", "j")))
    before, after = carried(STEP, other)
    assert {"y_last", "z_last"} < set(after.buffers)
    memory = {name: np.random.default_rng(1).random(14) for name in "xyz"}
    for name, values in interpret(before, memory).items():
        np.testing.assert_array_equal(interpret(after, memory)[name], values)


@pytest.mark.parametrize(
    "body",
    [
        (assign(load("y", "j"), add(load("y", op("sub", "j", 2)), load("x", "j"))),),
        (STEP, assign(load("y", add("j", 1)), 0.0)),
        (STEP, assign(load("z", "j"), PREVIOUS)),
        (assign(load("y", "j"), PREVIOUS, guard=op("gt", load("x", "j"), 0.5)),),
        (assign(load("y", 0), add(load("y", 0), load("x", "j"))),),
    ],
    ids=["two ago", "another store", "read behind the store", "not always stored", "one element"],
)
def test_what_is_more_stays(body: tuple[Node, ...]) -> None:
    before, after = carried(*body)
    assert after.body == before.body


@pytest.mark.parametrize("start", [0, 1])
def test_what_the_first_iteration_knows_better_than_to_read_is_not_read(start: int) -> None:
    """From 0 on, there is nothing before the first element; from 1 on, there is."""
    choice = op("select", op("gt", "j", 0), add(PREVIOUS, load("x", "j")), load("x", "j"))
    before, after = carried(assign(load("y", "j"), choice), start=start)
    assert (after.body == before.body) == (start == 0)


def test_a_loop_that_does_not_run_reads_nothing() -> None:
    """Element -1 is read by the first iteration alone."""
    length = load("n")
    buffers = {b.name: b for b in (array("x", 9), array("y", 9), array("n", dtype="int64"))}
    around = Loop("j", op("sub", 1, 1), length, (STEP,), independent=False)
    first, _ = carry_in_scalars((around,), dict(buffers), lambda name: name)
    value = first.value  # type: ignore[union-attr]
    assert value.name == "select" and length in loads(value.args[0])
