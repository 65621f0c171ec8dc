"""Reductions under a condition on data do without the branch; what must not be read in vain keeps it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from nests.examples import accumulate, array, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory

from gnnperf.nests import LoopNest, Statement
from gnnperf.nests.ir import Expr, Load, Op, walk
from gnnperf.schedules.recipes import DEFAULTS, apply
from gnnperf.schedules.recipes.masked_sums import unconditional

N = 23
SUM = load("s")
ABOVE = op("gt", load("x", "i"), 0.5)


def masked(guard: Expr = ABOVE, value: Expr | None = None, by: str = "add", target: Load = SUM) -> LoopNest:
    term = value or mul(load("x", "i"), load("y", "i"))
    statement = replace(accumulate(target, term, by), guard=guard)  # type: ignore[arg-type]
    arrays = [array("x", N), array("y", N), array("s"), array("z", N), array("at", N, dtype="int64")]
    return nest("masked", arrays, loop("i", N, statement, independent=True))


def only(one: LoopNest) -> Statement:
    (statement,) = (n for n in walk(one.body) if isinstance(n, Statement))
    return statement


@pytest.mark.parametrize("by", ["add", "mul", "min", "max"])
def test_what_the_condition_leaves_out_does_not_count(by: str) -> None:
    one = masked(by=by)
    found = only(unconditional(one))
    assert found.guard is None and isinstance(found.value, Op) and found.value.name == "select"
    memory = random_memory(one, np.random.default_rng(3))
    memory["y"][memory["x"] <= 0.5] = np.nan
    expected = interpret(one, memory)["s"]
    assert np.isfinite(expected)
    for recipe in DEFAULTS[:4]:
        np.testing.assert_allclose(interpret(apply(recipe, one), memory)["s"], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "kept",
    [
        masked(op("gt", "i", 3)),  # what lies before may not be there
        masked(value=load("y", load("at", "i"))),  # nor what an index points to that is not meant
        masked(target=load("z", load("at", "i"))),
        masked(value=mul(*[mul(mul(load("x", "i"), 2.0), load("y", "i"))] * 2)),  # five operations
    ],
)
def test_other_conditions_stay(kept: LoopNest) -> None:
    assert unconditional(kept) == kept
