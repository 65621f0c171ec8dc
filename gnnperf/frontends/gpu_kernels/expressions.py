"""Integer arithmetic in descriptions of kernels, for one configuration or for many at once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np
from jaxtyping import Int64

from gnnperf.errors import InputError

Values = Mapping[str, Int64[np.ndarray, " n"]]
"""Values of parameters and sizes in n configurations, by name."""


def _cdiv(a: Any, b: Any) -> Any:
    return -(-a // b)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"cdiv": _cdiv, "min": np.minimum, "max": np.maximum}
_NODES = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp),
    *(ast.IfExp, ast.Call, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.Not),
    *(ast.And, ast.Or, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)


@dataclass(frozen=True, slots=True)
class Expression:
    """Of integers: + - * // % **, comparisons, and, or, not, `a if c else b`, cdiv(a, b), min, max.

    Truth is 1, and anything but 0 is true. `names`: what it reads.
    """

    text: str
    names: frozenset[str]
    _code: CodeType

    @classmethod
    def parse(cls, text: object, where: str) -> Expression:
        """`text` may be a number or a truth value, as YAML gives them. `where` begins messages."""
        source = str(int(text)) if isinstance(text, bool | int) else str(text).strip()
        try:
            tree = ast.parse(source, mode="eval")
        except (SyntaxError, ValueError):
            raise InputError(f"{where}: expected an expression such as M // MWG, got {source!r}") from None
        for node in ast.walk(tree):
            call = isinstance(node, ast.Call) and (
                not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS or bool(node.keywords)
            )
            number = isinstance(node, ast.Constant) and not isinstance(node.value, int)
            if call or number or not isinstance(node, _NODES):
                raise InputError(
                    f"{where}: expected integers, names, + - * // % **, comparisons, and, or, not, if-else, "
                    f"cdiv, min and max, got {source!r}"
                )
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - set(_FUNCTIONS)
        vectorised = ast.fix_missing_locations(_Elementwise().visit(tree))
        return cls(source, frozenset(names), compile(vectorised, where, "eval"))

    def __call__(self, values: Values, where: str) -> Int64[np.ndarray, " n"]:
        """Evaluate in n configurations. InputError for a name without value, or a division by zero."""
        if missing := sorted(self.names - set(values)):
            raise InputError(f"{where}: {missing[0]!r} in {self.text!r} is no parameter, size or loop bound")
        with np.errstate(divide="raise"):
            try:
                found = np.asarray(eval(self._code, {"__builtins__": {}, **_HELPERS}, dict(values)), np.int64)
            except (FloatingPointError, ZeroDivisionError, OverflowError):
                raise InputError(f"{where}: {self.text!r} divides by zero or overflows") from None
        count = len(next(iter(values.values()))) if values else 1
        return np.broadcast_to(found, (count,))


_HELPERS: Mapping[str, Any] = {
    **_FUNCTIONS,
    "_if": lambda c, a, b: np.where(np.asarray(c) != 0, a, b),
    "_and": lambda *terms: np.logical_and.reduce(np.broadcast_arrays(*(np.asarray(t) != 0 for t in terms))),
    "_or": lambda *terms: np.logical_or.reduce(np.broadcast_arrays(*(np.asarray(t) != 0 for t in terms))),
    "_not": lambda a: np.asarray(a) == 0,
}


class _Elementwise(ast.NodeTransformer):
    """What Python decides for one value, NumPy decides for each."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._call("_if", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return self._call("_and" if isinstance(node.op, ast.And) else "_or", *node.values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            return self._call("_not", node.operand)
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        terms = [node.left, *node.comparators]
        pairs = [
            ast.Compare(left, [op], [right])
            for left, op, right in zip(terms, node.ops, terms[1:], strict=False)
        ]
        return pairs[0] if len(pairs) == 1 else self._call("_and", *pairs)

    def _call(self, name: str, *arguments: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(name, ast.Load()), [self.visit(a) for a in arguments], [])
