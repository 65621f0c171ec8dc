"""Affine forms: equal values for equal expressions, one form for all ways of writing them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from nests.examples import add, load, mul, op

from gnnperf.nests.affine import affine, constant, evaluate, from_affine, simplify
from gnnperf.nests.ir import Const, Expr, Load, Op, Symbol

NAMES = ("i", "j", "k")


@st.composite
def index_expressions(draw: st.DrawFn, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*map(Symbol, NAMES), *map(Const, range(-3, 4))]))
    name = draw(st.sampled_from(["add", "sub", "mul", "neg", "min", "max", "floordiv", "mod"]))
    left = draw(index_expressions(depth - 1))
    if name == "neg":
        return Op(name, (left,))
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
    args = [value(a, env) for a in expr.args]
    operations = {
        "add": lambda: args[0] + args[1], "sub": lambda: args[0] - args[1], "mul": lambda: args[0] * args[1],
        "neg": lambda: -args[0], "min": lambda: min(args), "max": lambda: max(args),
        "floordiv": lambda: args[0] // args[1], "mod": lambda: args[0] % args[1],
    }  # fmt: skip
    return operations[expr.name]()


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
