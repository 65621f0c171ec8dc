"""TIR expressions as expressions of the loop-nest IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from gnnperf.errors import UnsupportedConstruct
from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests import Const, Expr, Load, Op

_BINARY: Mapping[str, str] = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Mod": "mod", "FloorDiv": "floordiv",
    "FloorMod": "mod", "Min": "min", "Max": "max", "EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt",
    "GE": "ge", "And": "and", "Or": "or", "LShift": "shl", "RShift": "shr", "BitwiseAnd": "bitand",
    "BitwiseOr": "bitor", "BitwiseXor": "bitxor",
}  # fmt: skip

_CALLS: Mapping[str, str] = {
    **{
        name: name
        for name in "sqrt exp log tanh sin cos tan asin acos atan atan2 sinh cosh floor ceil pow abs".split()
    },
    "fabs": "abs", "if_then_else": "select", "shift_left": "shl", "shift_right": "shr",
    "bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor",
}  # fmt: skip
"""Last part of an intrinsic function's name -> operation."""

_ALIASES: Mapping[str, str] = {"float8_e4m3fn": "float8_e4m3"}


def dtype_of(value: Any) -> str:
    """dtype of a TIR variable or expression. Raises UnsupportedConstruct for vectors and handles."""
    name = str(value.dtype if hasattr(value, "dtype") else value.ty.dtype)
    name = _ALIASES.get(name, name)
    if name not in ELEMENT_BYTES:
        raise UnsupportedConstruct(f"values of type {name}")
    return name


class Expressions:
    """Translates expressions inside one function.

    values: what variables stand for, by their handle; names: buffers, by theirs.
    """

    def __init__(self) -> None:
        self.values: dict[int, Expr] = {}
        self.names: dict[int, str] = {}

    def __call__(self, value: Any) -> Expr:
        kind = type(value).__name__
        if kind == "Var":
            return self.variable(value)
        if kind == "IntImm":
            number = value.value
            return Const(bool(number) if str(value.ty.dtype) == "bool" else number)
        if (operation := _BINARY.get(kind)) is not None:
            return self.operation(operation, self(value.a), self(value.b))
        if kind == "TensorLoad":
            return self.load(value.source, value.indices)
        if kind in _OTHERS:
            return _OTHERS[kind](self, value)
        raise UnsupportedConstruct(f"an expression of the kind {kind}: {_short(value)}")

    def operation(self, name: str, left: Expr, right: Expr) -> Expr:
        if type(left) is Const and type(right) is Const and name in _FOLDED:
            return Const(_FOLDED[name](left.value, right.value))
        return Op(name, (left, right))

    def variable(self, variable: Any) -> Expr:
        found = self.values.get(variable.__chandle__())
        if found is None:
            raise UnsupportedConstruct(
                f"the variable {variable.name}, which is no iterator; sizes must be constant numbers"
            )
        return found

    def load(self, buffer: Any, indices: Any) -> Load:
        return Load(self.names[buffer.__chandle__()], tuple([self(i) for i in indices]))

    def call(self, value: Any) -> Expr:
        name = str(getattr(value.op, "name", value.op))
        short = name.rpartition(".")[2]
        args = [self(a) for a in value.args if type(a).__name__ != "StringImm"]
        if short in _CALLS:
            return Op(_CALLS[short], tuple(args))
        if short == "popcount":
            return _popcount(args[0], 8 * ELEMENT_BYTES[dtype_of(value.args[0])])
        if short in _COMPOSED:
            return _COMPOSED[short](*args)
        raise UnsupportedConstruct(f"a call of {name}")


def _op(name: str, *args: Expr) -> Expr:
    return Op(name, args)


def _power(base: float) -> Callable[[Expr], Expr]:
    return lambda x: _op("pow", Const(base), x)


def _logarithm(base: float) -> Callable[[Expr], Expr]:
    return lambda x: _op("div", _op("log", x), Const(math.log(base)))


def _erf(x: Expr) -> Expr:
    """By the usual approximation: the IR has no error function."""
    cubic = _op("mul", Const(0.08943), _op("mul", x, _op("mul", x, x)))
    return _op("tanh", _op("mul", Const(2 / math.sqrt(math.pi)), _op("add", x, cubic)))


def _popcount(x: Expr, bits: int) -> Expr:
    """How many bits of an integer are set: in pairs of bits, in fours, in bytes, and in all bytes, which are
    the digits of a number to base 256."""
    for shift, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        every = Const(int.from_bytes(bytes([mask]) * (bits // 8), "big"))
        low, high = (_op("bitand", part, every) for part in (x, _op("shr", x, Const(shift))))
        x = _op("add", low, high)
    return x if bits == 8 else _op("mod", x, Const(255))


def _complement(x: Expr) -> Expr:
    return _op("sub", _op("neg", x), Const(1))


_COMPOSED: Mapping[str, Callable[..., Expr]] = {
    "sigmoid": lambda x: _op("div", Const(1.0), _op("add", Const(1.0), _op("exp", _op("neg", x)))),
    "rsqrt": lambda x: _op("div", Const(1.0), _op("sqrt", x)),
    "exp2": _power(2.0),
    "exp10": _power(10.0),
    "log2": _logarithm(2.0),
    "log10": _logarithm(10.0),
    "log1p": lambda x: _op("log", _op("add", Const(1.0), x)),
    "fmod": lambda x, y: _op("mod", x, y),
    "likely": lambda x: x,
    "erf": _erf,
    "round": lambda x: _op("floor", _op("add", x, Const(0.5))),
    "nearbyint": lambda x: _op("floor", _op("add", x, Const(0.5))),
    "trunc": lambda x: _op("mul", _op("sign", x), _op("floor", _op("abs", x))),
    "bitwise_not": _complement,
    "isnan": lambda x: _op("ne", x, x),
    "isinf": lambda x: _op("eq", _op("abs", x), Const(math.inf)),
    "isfinite": lambda x: _op("lt", _op("abs", x), Const(math.inf)),
}
"""Functions that the IR lacks, in terms of those that it has. Rounding differs from TIR's at exact halves."""


def _let(translate: Expressions, value: Any) -> Expr:
    translate.values[value.var.__chandle__()] = translate(value.value)
    return translate(value.body)


_OTHERS: Mapping[str, Callable[[Expressions, Any], Expr]] = {
    "FloatImm": lambda translate, value: Const(float(value.value)),
    "Cast": lambda translate, value: Op(f"cast:{dtype_of(value)}", (translate(value.value),)),
    "Select": lambda translate, value: Op(
        "select", (translate(value.condition), translate(value.true_value), translate(value.false_value))
    ),
    "Not": lambda translate, value: Op("not", (translate(value.a),)),
    "BitwiseNot": lambda translate, value: (
        Op("not", (translate(value.a),)) if dtype_of(value) == "bool" else _complement(translate(value.a))
    ),
    "Call": lambda translate, value: translate.call(value),
    "Let": _let,
}

_FOLDED: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}
"""Arithmetic that substitution of loops of one iteration leaves behind."""


def _short(value: Any) -> str:
    text = str(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."
