"""Statements of descriptions, such as `C[n, m] += A[k, m] * B[k, n]`, as expressions of the loop-nest IR."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels.expressions import check_depth
from gnnperf.nests import Const, Expr, Load, Op, Statement, Symbol
from gnnperf.nests.affine import affine
from gnnperf.nests.ir import Reduction, loads

_BINARY: Mapping[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.Mod: "mod",
    ast.FloorDiv: "floordiv", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq",
    ast.NotEq: "ne", ast.BitXor: "bitxor", ast.BitAnd: "bitand", ast.BitOr: "bitor",
}  # fmt: skip
_CALLS = {"sqrt": 1, "exp": 1, "log": 1, "abs": 1, "tanh": 1, "sin": 1, "cos": 1, "min": 2, "max": 2,
          "select": 3}  # fmt: skip
_REDUCTIONS: Mapping[type[ast.AST], Reduction] = {ast.Add: "add", ast.Mult: "mul"}


@dataclass(frozen=True, slots=True)
class ElementAccess:
    """An element of a buffer. For each of its dimensions: coefficient by axis, and what is added to them.

    indirect: elements of other buffers that subscripts add, by the names that stand for them among the axes.
    """

    buffer: str
    coefficients: tuple[Mapping[str, int], ...]
    offsets: tuple[int, ...]
    indirect: Mapping[str, ElementAccess] = field(default_factory=dict)


def parse_statement(text: object, buffers: Mapping[str, int], axes: Iterable[str], where: str) -> Statement:
    """The statement with axes as symbols.

    Args:
        text: `target = value`, or with += or *=, where subscripts are sums of axes, integers and, of what is
            read, elements of buffers.
        buffers: number of dimensions, by name.
        axes: names that may be in subscripts and values.
        where: begins messages.
    """
    try:
        tree = ast.parse(str(text))
        check_depth(tree)
        (node,) = tree.body
    except (MemoryError, RecursionError, SyntaxError, ValueError):  # the first two of deep ones
        raise InputError(
            f"{where}: expected a statement such as C[i, j] += A[i, k] * B[k, j], got {text!r}"
        ) from None
    reader = _Reader(buffers, frozenset(axes), where)
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, reduce = reader.expression(node.targets[0]), None
    elif isinstance(node, ast.AugAssign) and type(node.op) in _REDUCTIONS:
        target, reduce = reader.expression(node.target), _REDUCTIONS[type(node.op)]
    else:
        raise InputError(f"{where}: expected an assignment with =, += or *=, got {text!r}")
    if not isinstance(target, Load):
        raise InputError(f"{where}: expected an element of a buffer to the left, got {text!r}")
    if len(loads(target)) > 1:
        raise InputError(f"{where}: expected what is written at sums of axes and integers, got {text!r}")
    return Statement(
        target, reader.expression(node.value), reduce, Const(0 if reduce == "add" else 1) if reduce else None
    )


def access(load: Load, where: str) -> ElementAccess:
    """The subscripts of `load`. InputError for those that are no sums, which descriptions cannot have."""
    found = [affine(index) for index in load.indices]
    indirect = dict[str, ElementAccess]()
    for atom in (atom for form in found for atom in form.terms):
        if isinstance(atom, Load):
            indirect[str(atom)] = access(atom, where)
        elif not isinstance(atom, Symbol):
            raise InputError(
                f"{where}: expected subscripts that are sums of axes, integers and elements of buffers, "
                f"got {atom}"
            )
    coefficients = tuple({_axis(atom): c for atom, c in form.terms.items()} for form in found)
    return ElementAccess(load.buffer, coefficients, tuple(form.constant for form in found), indirect)


def _axis(atom: Expr) -> str:
    return atom.name if isinstance(atom, Symbol) else str(atom)


class _Reader:
    def __init__(self, buffers: Mapping[str, int], axes: frozenset[str], where: str) -> None:
        self.buffers, self.axes, self.where = buffers, axes, where

    def expression(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=int() | float() as value):
                return Const(value)
            case ast.Name(id=name) if name in self.axes:
                return Symbol(name)
            case ast.Name(id=name) if self.buffers.get(name) == 0:
                return Load(name)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in self.buffers:
                indices = index.elts if isinstance(index, ast.Tuple) else [index]
                if len(indices) != self.buffers[name]:
                    raise InputError(
                        f"{self.where}: expected {self.buffers[name]} subscripts of {name}, "
                        f"got {ast.unparse(node)}"
                    )
                return Load(name, tuple(self.expression(i) for i in indices))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return Op(_BINARY[type(op)], (self.expression(left), self.expression(right)))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _BINARY:
                return Op(_BINARY[type(op)], (self.expression(left), self.expression(right)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Op("neg", (self.expression(operand),))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if _CALLS.get(name) == len(args):
                return Op(name, tuple(self.expression(a) for a in args))
        raise InputError(
            f"{self.where}: expected axes ({', '.join(sorted(self.axes))}), buffers "
            f"({', '.join(self.buffers)}), arithmetic and {', '.join(_CALLS)}, got {ast.unparse(node)!r}"
        )
