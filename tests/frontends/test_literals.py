"""Literals do not widen what is made of float32 numbers; what a program keeps in float64 stays in it."""

from __future__ import annotations

import numpy as np
import pytest
from nests.examples import add, array, assign, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory

from gnnperf.frontends.dace.literals import narrow_literals
from gnnperf.nests import Expr, LoopNest, Node, Statement
from gnnperf.nests.ir import Op, expressions_of, subexpressions, walk

N = 40


def wide(expr: Expr) -> Op:
    return op("cast:float64", expr)


X, BEFORE, D = (load(name, "i") for name in ("x", "z", "d"))
LAP = load("lap")
Y = load("y", "i")


def example(*statements: Node, independent: bool = True) -> LoopNest:
    arrays = [
        *(array(name, N, dtype="float32") for name in ("x", "y", "z")),
        array("d", N), array("n", N, dtype="int64"),
        *(array(name, dtype="float64", transient=True, scope="local") for name in ("lap", "s")),
    ]  # fmt: skip
    return nest("example", arrays, loop("i", N, *statements, independent=independent))


def narrowed(before: LoopNest) -> LoopNest:
    """Checked for meaning, too, as near as float32 tells."""
    buffers = dict(before.buffers)
    after = LoopNest(before.name, buffers, narrow_literals(before.body, buffers), before.parameters)
    memory = random_memory(before, np.random.default_rng(3))
    expected, found = interpret(before, memory), interpret(after, memory)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)
    return after


def widened(nest_: LoopNest) -> bool:
    """Is anything converted to float64, or kept in it?"""
    expressions = [e for n in walk(nest_.body) for root in expressions_of(n) for e in subexpressions(root)]
    kept = {s.target.buffer for s in walk(nest_.body) if isinstance(s, Statement)} & {"lap", "s"}
    return any(isinstance(e, Op) and e.name == "cast:float64" for e in expressions) or any(
        nest_.buffers[name].dtype == "float64" for name in kept
    )


@pytest.mark.parametrize(
    "statements",
    [
        [assign(Y, mul(0.25, wide(add(X, BEFORE))))],
        [assign(Y, op("sub", op("div", wide(X), 3.0), mul(wide(BEFORE), 0.1)))],
        [assign(Y, op("cast:float32", op("sqrt", add(wide(X), 1))))],
        [Statement(Y, mul(0.5, wide(X)), "add")],
        [assign(Y, op("pow", op("sub", wide(X), 0.5), 2))],
        [assign(LAP, op("sub", mul(2.0, wide(X)), wide(BEFORE))), assign(Y, add(wide(X), mul(0.1, LAP)))],
        [assign(Y, op("select", op("gt", wide(X), 0.5), mul(0.5, wide(X)), 0.0))],
    ],
)
def test_what_is_stored_as_float32_is_computed_in_it(statements: list[Node]) -> None:
    before = example(*statements)
    assert widened(before) and not widened(narrowed(before))


@pytest.mark.parametrize(
    "statements",
    [
        [assign(D, mul(0.25, wide(X)))],
        [assign(Y, mul(D, wide(X)))],
        [assign(Y, mul(1e-300, wide(X)))],
        [assign(Y, op("exp", mul(0.5, wide(X))))],
        [assign(LAP, mul(2.0, wide(X))), assign(Y, mul(0.1, LAP)), assign(D, LAP)],
        [assign(LAP, mul(2.0, wide(X))), assign(Y, op("select", op("gt", LAP, 1.9), mul(0.1, LAP), 0.0))],
        [assign(LAP, mul(2.0, wide(X))), assign(load("y", load("n", "i")), LAP, guard=op("gt", LAP, 2.0))],
        [assign(LAP, 1.0), assign(LAP, op("add", LAP, wide(X))), assign(D, mul(LAP, 2.0))],
    ],
)  # fmt: skip
def test_what_a_program_keeps_in_float64_stays_in_it(statements: list[Node]) -> None:
    before = example(*statements)
    assert narrowed(before).body == before.body


def test_sums_and_recurrences_stay_as_precise_as_they_are() -> None:
    decay = assign(load("s"), add(mul(0.9, load("s")), mul(0.1, wide(X))))
    before = example(decay, assign(Y, load("s")), independent=False)
    (rows,) = before.body
    first = LoopNest(before.name, before.buffers, (assign(load("s"), 0.0), rows), {})
    assert narrowed(first).body == first.body


def test_comparisons_that_float32_decides_as_well_are_not_widened() -> None:
    def of(condition: Expr) -> LoopNest:
        return example(assign(D, op("select", condition, 1.0, 2.0)))

    exact = narrowed(of(op("and", op("gt", wide(X), 0.5), op("le", wide(X), wide(BEFORE)))))
    assert not widened(exact)
    for rounded in (op("gt", wide(X), 0.1), op("gt", add(wide(X), wide(BEFORE)), 0.5), op("gt", wide(X), D)):
        assert narrowed(of(rounded)) == of(rounded)
