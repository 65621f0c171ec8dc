"""The type of an expression's value, as the C++ that is emitted computes it."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.nests.ir import TRANSCENDENTAL, Buffer, Const, Expr, Load, Op, subexpressions

TRUTHS = frozenset("lt le gt ge eq ne and or not".split())
"""Operations whose value is true or false."""
_REAL = TRANSCENDENTAL | {"sqrt", "floor", "ceil", "div"}
_OF_COMPLEX = frozenset("abs real imag".split())
"""Real results of complex arguments."""
_INEXACT = ("float", "complex")
_PROMOTED = frozenset("int8 int16 uint8 uint16 bool".split())
"""C++ computes with these as int."""

REAL_PART: Mapping[str, str] = {"complex128": "float64", "complex64": "float32"}

INTEGER, REAL = "integer literal", "real literal"
"""Literals, iterators and parameters take the type of what they meet."""


def value_dtype(expr: Expr, buffers: Mapping[str, Buffer]) -> str | None:
    """dtype of the value, INTEGER or REAL where only literals decide, None where unsure."""
    if isinstance(expr, Load):
        return buffers[expr.buffer].dtype
    if isinstance(expr, Const):
        if isinstance(expr.value, bool):
            return "bool"
        if isinstance(expr.value, complex):
            return None
        return REAL if isinstance(expr.value, float) else INTEGER
    if not isinstance(expr, Op):
        return INTEGER
    if expr.name.startswith("cast:"):
        return expr.name.removeprefix("cast:")
    if expr.name in TRUTHS:
        return "bool"
    args = expr.args[1:] if expr.name == "select" else expr.args
    found = {value_dtype(a, buffers) for a in args}
    if expr.name == "pow" and len(found) > 1 and INTEGER in found:
        return None
    result = _common(found)
    if expr.name in _OF_COMPLEX and result is not None:
        result = REAL_PART.get(result, result)
    if expr.name in _REAL and expr.name != "div" and result is not None and "int" in result:
        return "float64"
    return None if result in _PROMOTED and expr.name not in ("select", "min", "max") else result


def is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def integer_bits(dtype: str) -> int:
    """Of an integer type."""
    return int(dtype.removeprefix("u").removeprefix("int"))


def integer_dtype(expr: Expr, buffers: Mapping[str, Buffer]) -> str | None:
    """The type, of 32 or 64 bits, that C++ computes an expression of integers in, by its usual conversions;
    None of one with others in it."""
    match expr:
        case Const(value=int() as number):
            return "int32" if -(2**31) < number < 2**31 else "int64" if number < 2**63 else "uint64"
        case Op(name=name) if name in TRUTHS:
            return "int32"
        case Load(buffer=name):
            return _promoted(buffers[name].dtype)
        case Op(name=name) if name.startswith("cast:"):
            return _promoted(name.removeprefix("cast:"))
        case Op(name="shl" | "shr" | "neg" | "abs", args=(arg, *_)):
            return integer_dtype(arg, buffers)
        case Op(name=name, args=args):
            types = [integer_dtype(arg, buffers) for arg in (args[1:] if name == "select" else args)]
            known = [dtype for dtype in types if dtype is not None]
            # Of one width, the one without a sign.
            return max(known, key=lambda t: (integer_bits(t), t)) if known == types else None
    return None if isinstance(expr, Const) else "int64"


def _promoted(dtype: str) -> str | None:
    if dtype in _PROMOTED:
        return "int32"
    return dtype if is_integer(dtype) else None


def _common(found: set[str | None]) -> str | None:
    strong = {f for f in found if f not in (INTEGER, REAL)}
    if not strong:
        return REAL if REAL in found else INTEGER
    if len(strong) > 1:
        return None
    (dtype,) = strong
    return None if dtype is None or (REAL in found and not dtype.startswith(_INEXACT)) else dtype


def literal(value: int | float | bool | complex, dtype: str) -> int | float | bool | complex:
    """The number as a buffer of `dtype` holds it, precision aside."""
    if dtype.startswith("complex"):
        return complex(value)
    kind = bool if dtype == "bool" else float if dtype.startswith("float") else int
    return kind(value.real)


def as_stored(value: Expr, dtype: str, readers: set[str], buffers: Mapping[str, Buffer]) -> Expr:
    """The value as it would be read back from a buffer of `dtype`: rounded or truncated where storing
    would do so. `readers`: dtypes of the statements that will hold the expression."""
    if isinstance(value, Const):
        return Const(literal(value.value, dtype))
    real = any(isinstance(e, Const) and isinstance(e.value, float) for e in subexpressions(value))
    if value_dtype(value, buffers) == dtype and not (real and readers != {dtype}):
        return value
    return Op(f"cast:{dtype}", (value,))
