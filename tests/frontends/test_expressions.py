"""Python expressions as IR: operators, functions, casts, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from frontends.interpret import Interpreter

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.dtypes import expression_dtype
from gnnperf.frontends.dace.expressions import SymbolNames, parse_expression
from gnnperf.nests import Buffer, Const, Expr, Load, LoopNest, Op, Symbol

NAMES = SymbolNames(Symbol, Load)


def evaluate(text: str, **symbols: float) -> float:
    interpreter = Interpreter(LoopNest("none", {}, ()), {})
    interpreter.symbols.update(symbols)  # type: ignore[arg-type]
    return float(interpreter.value(parse_expression(text, NAMES)))


@pytest.mark.parametrize(
    "text",
    [
        "a + b * 2 - -a", "(a + b) // 2", "a % 3", "a ** 2 + b ** 3", "(a + b) ** 2", "(a * b) ** 0.5",
        "1.5 if a > b else 2.5", "3 if 1 < a < 9 and not b == 4 or False else 7", "min(a, b, 3) + max(a, b)",
        "abs(a - b)", "math.exp(-a) + math.sqrt(b)", "a << 2 | b & 5 ^ 1", "~a", "+a", "float(a) / 2",
    ],
)  # fmt: skip
def test_means_what_python_means(text: str) -> None:
    a, b = 5, 3
    assert evaluate(text, a=a, b=b) == pytest.approx(float(eval(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int_floor(a, 2)", 2), ("int_ceil(a, 2)", 3), ("Max(a, 7)", 7), ("Min(a, 7)", 5),
        ("dace.float32(a)", 5),
        ("reciprocal(a)", 0.2), ("rsqrt(a)", 5**-0.5), ("square(a)", 25), ("tan(a)", math.tan(5)),
        ("log2(a)", math.log2(5)), ("np.log10(a)", math.log10(5)), ("exp2(a)", 32), ("round(a * 0.5)", 3),
        ("round(a * -0.5)", -3), ("round(a * 0.49)", 2), ("round(a * 0.0999999)", 0), ("math.pi", math.pi),
        ("np.where(a > 4, 1, 2)", 1), ("dace.int64(2.0)", 2),
    ],
)  # fmt: skip
def test_functions_of_dace_and_numpy(text: str, expected: float) -> None:
    assert evaluate(text, a=5) == pytest.approx(expected)


def test_subscripts_are_canonical() -> None:
    one, other = (parse_expression(t, NAMES) for t in ("A[i + 1, 2 * j - j]", "A[1 + i, j]"))
    assert one == other


@pytest.mark.parametrize(
    "text", ["gamma(a)", "a @ b", "[a, b]", "'text'", "f(a, key=1)", "a is b", "a b", "pow(a)"]
)
def test_what_has_no_translation_says_so(text: str) -> None:
    with pytest.raises(UnsupportedConstruct):
        parse_expression(text, NAMES)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Op("add", (Load("f"), Const(1))), "float32"),
        (Op("add", (Load("f"), Load("i"))), "float32"),
        (Op("mul", (Load("f"), Const(0.5))), "float64"),
        (Op("add", (Load("i"), Const(1))), "int32"),
        (Op("add", (Load("b"), Load("b"))), "int32"),
        (Op("add", (Load("i"), Symbol("n"))), "int64"),
        (Op("lt", (Load("f"), Const(1))), "bool"),
        (Op("select", (Load("b"), Load("f"), Const(0))), "float32"),
        (Op("sqrt", (Load("i"),)), "float64"),
        (Op("cast:int8", (Load("f"),)), "int8"),
        (Const(3), "int64"),
    ],
)
def test_types_follow_cpp(expr: Expr, expected: str) -> None:
    kinds = {"f": "float32", "i": "int32", "b": "bool"}
    buffers = {n: Buffer(n, t, (), ()) for n, t in kinds.items()}
    assert expression_dtype(expr, buffers) == expected
    assert np.dtype(expected)
