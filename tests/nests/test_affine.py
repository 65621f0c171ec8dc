"""Affine forms: equal values for equal expressions, one form for all ways of writing them."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import add, load, mul, op

from gnnperf.nests.affine import affine, constant, evaluate, from_affine, simplify
from gnnperf.nests.ir import Const, Expr, Load, Op, Symbol

NAMES = ("i", "j", "k")


OPERATIONS: dict[str, Callable[..., int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs,
    "min": min, "max": max, "floordiv": operator.floordiv, "mod": operator.mod,
}  # fmt: skip
COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


@st.composite
def choices(draw: st.DrawFn, place: Expr) -> Expr:
    """What borders make of a place: beyond some number, another one, which may be reflected or clamped."""
    numbers = st.integers(-3, 3)
    condition = op(draw(st.sampled_from([*COMPARISONS])), place, draw(numbers))
    beyond = add(mul(draw(numbers), place), draw(numbers))
    return op("select", condition, *draw(st.permutations([beyond, place])))


@st.composite
def index_expressions(draw: st.DrawFn, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*map(Symbol, NAMES), *map(Const, range(-3, 4))]))
    name = draw(st.sampled_from([*OPERATIONS, "select"]))
    left = draw(index_expressions(depth - 1))
    if name in ("neg", "abs"):
        return Op(name, (left,))
    if name == "select":
        return draw(choices(left))
    right = (
        Const(draw(st.integers(1, 4))) if name in ("floordiv", "mod") else draw(index_expressions(depth - 1))
    )
    return Op(name, (left, right))


def value(expr: Expr, env: dict[str, int]) -> int:
    if isinstance(expr, Const):
        return int(expr.value)
    if isinstance(expr, Symbol):
        return env[expr.name]
    assert isinstance(expr, Op)
    if expr.name == "select":
        condition, one, other = expr.args
        assert isinstance(condition, Op)
        holds = COMPARISONS[condition.name](*(value(a, env) for a in condition.args))
        return value(one if holds else other, env)
    return OPERATIONS[expr.name](*(value(a, env) for a in expr.args))


environments = st.fixed_dictionaries({n: st.integers(-9, 9) for n in NAMES})


@given(index_expressions(), environments)
def test_simplify_keeps_the_value(expr: Expr, env: dict[str, int]) -> None:
    assert value(simplify(expr), env) == value(expr, env)


@given(index_expressions())
def test_simplify_is_idempotent(expr: Expr) -> None:
    assert simplify(simplify(expr)) == simplify(expr)
    assert affine(from_affine(affine(expr))) == affine(expr)


@given(index_expressions(), environments)
def test_evaluate_binds_every_symbol(expr: Expr, env: dict[str, int]) -> None:
    assert evaluate(expr, env) == value(expr, env)


def test_terms_in_any_order_are_one_form() -> None:
    assert simplify(add("i", mul(2, "j"), 1)) == simplify(add(1, "j", "i", "j"))


def test_what_is_not_affine_is_an_atom() -> None:
    indirect = load("index", add("i", 0))
    assert dict(affine(add(indirect, 2)).terms) == {Load("index", (Symbol("i"),)): 1}
    assert constant(op("sub", indirect, indirect)) == 0


def test_a_choice_between_equals_is_none() -> None:
    one, same = op("add", "i", 1), op("add", 1, "i")
    assert simplify(op("select", op("gt", load("x", "i"), 0.0), one, same)) == one


def test_division_by_zero_is_left_alone() -> None:
    assert constant(op("floordiv", 4, 0)) is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (op("abs", "i"), op("max", "i", op("neg", "i"))),
        (op("select", op("lt", "i", 0), op("neg", "i"), "i"), op("max", "i", op("neg", "i"))),
        (op("select", op("lt", "i", 0), op("sub", -1, "i"), "i"), op("max", "i", op("sub", -1, "i"))),
        (op("select", op("gt", "i", 7), op("sub", 14, "i"), "i"), op("min", "i", op("sub", 14, "i"))),
        (op("select", op("ge", "i", 8), op("sub", 15, "i"), "i"), op("min", "i", op("sub", 15, "i"))),
        (op("select", op("le", "i", 7), "i", 7), op("min", "i", 7)),
        (op("select", op("gt", 0, "i"), 0, "i"), op("max", "i", 0)),
        (op("select", op("ge", "i", 8), op("sub", "i", 8), "i"), None),
        (op("select", op("lt", "i", 0), op("sub", -3, "i"), "i"), None),
        (op("select", op("lt", "i", 0), "j", "i"), None),
    ],
)
def test_choices_of_places_are_extremes_where_they_may_be(written: Expr, meant: Op | None) -> None:
    found = simplify(written)
    assert isinstance(found, Op)
    if meant is None:
        assert found == written
    else:
        assert found.name == meant.name and set(found.args) == set(map(simplify, meant.args))
