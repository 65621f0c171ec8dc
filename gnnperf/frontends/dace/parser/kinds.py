"""Which variables of a program are integers, and which real numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Container
from typing import Any

import dace
import numpy as np
from dace import data

from gnnperf.frontends.dace.parser.trees import assigned_in

_WHOLE = re.compile(r"(.*\.)?(u?int\d*|len|bool|arg\w+|count_nonzero)")
"""Functions whose results are integers, whatever they are of; and arguments that say so."""
_REAL = re.compile(r"(.*\.)?(float\d*|sqrt|exp|log\w*|sin|cos|tanh?|mean|average|std|var|zeros|ones|empty)")


def is_real(visitor: Any, node: ast.expr, reals: Container[str] = ()) -> bool:
    """Is it computed from a real number, or several? `reals` are variables that hold some."""
    match node:
        case ast.Constant(value=float()):
            return True
        case ast.Name(id=name):
            name = visitor.variables.get(name, name)
            held = visitor.sdfg.arrays.get(name, visitor.scope_arrays.get(name))
            return name in reals or getattr(held, "dtype", None) in (dace.float32, dace.float64)
        case ast.BinOp(left=left, op=op, right=right):
            return isinstance(op, ast.Div) or any(is_real(visitor, side, reals) for side in (left, right))
        case ast.IfExp(body=one, orelse=other):
            return any(is_real(visitor, side, reals) for side in (one, other))
        case ast.UnaryOp(operand=of) | ast.Subscript(value=of) | ast.Attribute(value=of):
            return not isinstance(getattr(node, "op", None), ast.Not) and is_real(visitor, of, reals)
        case ast.Call(func=function, args=arguments):
            said = (function, *arguments[1:], *(k.value for k in node.keywords))
            if any(_WHOLE.fullmatch(ast.unparse(part)) for part in said):
                return False
            real = _REAL.fullmatch(ast.unparse(function)) is not None
            return real or any(is_real(visitor, part, reals) for part in (function, *arguments))
    return False


def is_integer(visitor: Any, node: ast.expr) -> bool:
    """Is it computed from counters, symbols and integers alone?"""
    match node:
        case ast.Constant(value=int()):
            return True
        case ast.Name(id=name):
            known = {**visitor.globals, **visitor.defined}.get(name)
            if isinstance(known, dace.symbolic.symbol):
                return known.dtype in dace.dtypes.INTEGER_TYPES
            return name in visitor.sdfg.symbols and name not in visitor.sdfg.arrays
        case ast.UnaryOp(operand=operand):
            return is_integer(visitor, operand)
        case ast.BinOp(left=left, op=op, right=right):
            sides = is_integer(visitor, left) and is_integer(visitor, right)
            return sides and not isinstance(op, ast.Div | ast.Pow)
    return False


def common_type(original: Any) -> Any:
    """What an unsigned number and a literal make, `(3 * u) >> 8`, is an unsigned number, as in arrays of
    NumPy's. DaCe has no integer for 64 bits of both kinds, but a real number, which has no bits. And what a
    number and an element of an array make, `total + x[i]`, has the wider type of the two, where DaCe, which
    has the element as an array of one, takes that of the array."""

    def result_type(arguments: Any, operator: str | None = None) -> Any:
        held = [argument for argument in arguments if isinstance(argument, data.Data)]
        if operator is not None and operator not in ("Div", "Pow") and dace.uint64 in [h.dtype for h in held]:
            whole = (int, np.integer)
            arguments = [np.uint64(a) if isinstance(a, whole) and a >= 0 else a for a in arguments]
        if len(held) == len(arguments) and any(isinstance(one, data.Scalar) for one in held):
            arguments = [data.Scalar(one.dtype) if _is_element(one) else one for one in held]
        return original(arguments, operator)

    return result_type


def _is_element(held: data.Data) -> bool:
    """Is it an array of one that a program does not have, but DaCe makes for an element?"""
    return isinstance(held, data.Array) and held.transient and all(size == 1 for size in held.shape)


def begin_real(visitor: Any, program: ast.FunctionDef) -> None:
    """In place: a variable that begins as an integer and becomes a real number, `total = 0` before
    `total += x[i]`, is real from the start: DaCe gives it the type of what it holds first."""
    given = [pair for node in ast.walk(program) for pair in assigned_in(node)]
    values: dict[str, list[ast.expr]] = {}
    for name, value in given:
        values.setdefault(name, []).append(value)
    reals: set[str] = set()
    while found := {n for n in values.keys() - reals if any(is_real(visitor, v, reals) for v in values[n])}:
        reals |= found
    for name, value in given:
        start = value.operand if isinstance(value, ast.UnaryOp) else value
        if name in reals and isinstance(start, ast.Constant) and type(start.value) is int:
            start.value = float(start.value)
