"""Loop nests as JSON: what is read is what was written."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnperf.errors import InputError
from gnnperf.frontends.dace import load_kernel
from gnnperf.nests.document import nest_from_dict, nest_to_dict
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, LoopNest, Op, Statement, Symbol
from gnnperf.schedules.recipes import DEFAULTS
from gnnperf.schedules.recipes.apply import apply

KERNELS = Path(__file__).parents[1] / "e2e" / "kernels_small.py"

LEAVES = st.one_of(
    st.builds(Const, st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False))),
    st.builds(Const, st.complex_numbers(allow_nan=False, allow_infinity=False)),
    st.builds(Symbol, st.sampled_from(["i", "load", "float", "complex", "N"])),
)
EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.builds(Op, st.sampled_from(["add", "cast:float32"]), st.tuples(below, below)),
        st.builds(Load, st.just("a"), st.tuples(below)),
    ),
    max_leaves=8,
)


def there_and_back(nest: LoopNest) -> LoopNest:
    return nest_from_dict(json.loads(json.dumps(nest_to_dict(nest), allow_nan=False)))


@given(EXPRESSIONS, EXPRESSIONS)
def test_every_expression(value: Expr, bound: Expr) -> None:
    buffers = {"a": Buffer("a", "float64", (4, bound), (1, Symbol("N")), transient=True, scope="local")}
    statement = Statement(Load("a", (value,)), value, "add", bound, value)
    nest = LoopNest("n", buffers, (Loop("i", bound, value, (statement,), condition=bound),), {"N": 7})
    assert there_and_back(nest) == nest


def test_kinds_of_numbers_are_kept() -> None:
    numbers: list[bool | int | float] = [True, 1, 1.0, math.inf, -math.inf]
    body = tuple(Statement(Load("a"), Const(n)) for n in numbers)
    nest = LoopNest("n", {"a": Buffer("a", "float64", (), ())}, body)
    values = [s.value for s in there_and_back(nest).statements()]
    assert [(type(v.value), v.value) for v in values if isinstance(v, Const)] == [
        (type(n), n) for n in numbers
    ]


def test_scheduled_nests_of_real_kernels() -> None:
    (unit,) = load_kernel(f"{KERNELS}:scores", {"N": 60, "M": 50, "K": 40}, None).units
    for nest in (unit.nest, *(apply(recipe, unit.nest) for recipe in DEFAULTS[:4])):
        assert there_and_back(nest) == nest


@pytest.mark.parametrize("document", [{}, {"name": "n", "buffers": [], "body": [[]], "parameters": {}}])
def test_no_nest(document: dict[str, object]) -> None:
    with pytest.raises(InputError, match="expected a loop nest"):
        nest_from_dict(document)
