"""Element types: which ones the IR knows, and the C++ type of an expression."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gnnperf.errors import UnsupportedConstruct
from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.dtypes import REAL_PART
from gnnperf.nests.ir import TRANSCENDENTAL, Buffer, Const, Expr, Load, Op, Symbol

_BOOLEAN = frozenset("lt le gt ge eq ne and or not".split())
_ARITHMETIC = frozenset("add sub mul div floordiv mod neg shl shr".split())
_FLOATING = TRANSCENDENTAL | {"sqrt"}
_INEXACT = ("float", "complex")


def dtype_name(dtype: object) -> str:
    """IR name of a DaCe type; structures, vectors and pointers have none."""
    try:
        name = str(dtype.to_string())  # type: ignore[attr-defined]
    except AttributeError:  # strings, among others
        name = str(dtype)
    if name not in ELEMENT_BYTES:
        raise UnsupportedConstruct(f"elements of type {name}")
    return name


def expression_dtype(expr: Expr, buffers: Mapping[str, Buffer]) -> str:
    """The type C++ gives the expression; integer literals adapt to the other operand."""
    return _infer(expr, buffers) or "int64"


def _infer(expr: Expr, buffers: Mapping[str, Buffer]) -> str | None:
    match expr:
        case Const(value=value):
            if isinstance(value, bool):
                return "bool"
            return {float: "float64", complex: "complex128"}.get(type(value))
        case Symbol():
            return "int64"
        case Load(buffer=name):
            return buffers[name].dtype
        case Op(name=name, args=args):
            if name.startswith("cast:"):
                return name.removeprefix("cast:")
            if name in _BOOLEAN:
                return "bool"
            operands = args[1:] if name == "select" else args
            result = _promote([_infer(a, buffers) for a in operands])
            if result == "bool" and name in _ARITHMETIC:
                result = "int32"
            if name in _FLOATING and (result is None or not result.startswith(_INEXACT)):
                return "float64"
            return REAL_PART.get(result or "", result) if name in ("abs", "real", "imag") else result
    raise TypeError(expr)


def _promote(names: list[str | None]) -> str | None:
    known = [n for n in names if n is not None]
    if not known:
        return None
    floats = [n for n in known if n.startswith(_INEXACT)]
    if floats:  # C++ keeps float32 when it meets an integer, where NumPy would widen
        return str(np.result_type(*floats))
    if all(n == "bool" for n in known) and len(known) == len(names):
        return "bool"
    unsigned = {n for n in known if n in ("uint32", "uint64")}
    widest = max(np.dtype(n).itemsize for n in (*known, "int32"))
    return f"{'u' if f'uint{8 * widest}' in unsigned else ''}int{8 * widest}"
