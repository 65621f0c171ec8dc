"""Integer arithmetic in descriptions of kernels, for one configuration or for many at once."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from jaxtyping import Int64

from gnnperf.errors import InputError

Values = Mapping[str, Int64[np.ndarray, " n"]]
"""Values of parameters and sizes in n configurations, by name."""


def _cdiv(a: Any, b: Any) -> Any:
    return -(-a // b)


def _within(work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same, raising OverflowError beyond 64 bits, where arrays of integers wrap."""

    def checked(a: Any, b: Any) -> Any:
        if (np.abs(work(np.float64(a), np.float64(b))) >= 2.0**63).any():
            raise OverflowError
        return work(a, b)

    return checked


def _power(a: Any, b: Any) -> Any:
    """Raises OverflowError beyond 64 bits, where a result would be wrong or take for ever."""
    if (np.asarray(b) * np.log2(np.maximum(np.abs(a), 1)) >= 63).any():
        raise OverflowError
    return a**b


def _number(truth: Any) -> Any:
    """1 and 0, which add up; numpy's truth values do not."""
    return np.asarray(truth, np.int64)


LONGEST, DEPTH = 1_000, 50
"""Characters and levels of an expression."""

FUNCTIONS: Mapping[str, Callable[..., Any]] = {"cdiv": _cdiv, "min": np.minimum, "max": np.maximum}
_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _within(operator.add), ast.Sub: _within(operator.sub), ast.Mult: _within(operator.mul),
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power, ast.USub: operator.neg,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Not: lambda a: _number(a == 0),
}  # fmt: skip
_NODES = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp),
    *(ast.IfExp, ast.Call, ast.And, ast.Or, *_OPERATORS),
)


@dataclass(frozen=True, slots=True)
class Expression:
    """Of integers: + - * // % **, comparisons, and, or, not, `a if c else b`, cdiv(a, b), min, max.

    Truth is 1, and anything but 0 is true; what a condition rules out is not evaluated. `names`: what it
    reads.
    """

    text: str
    names: frozenset[str]
    _tree: ast.expr = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: object, where: str) -> Expression:
        """`text` may be a number or a truth value, as YAML gives them. `where` begins messages."""
        source = str(int(text)) if isinstance(text, bool | int) else str(text).strip()
        try:
            if len(source) > LONGEST:
                raise ValueError
            tree = ast.parse(source, mode="eval")
            check_depth(tree)
        except (MemoryError, RecursionError, SyntaxError, ValueError):  # the first two of deep ones
            raise InputError(f"{where}: expected an expression such as M // MWG, got {source!r}") from None
        for node in ast.walk(tree):
            call = isinstance(node, ast.Call) and (
                not isinstance(node.func, ast.Name)
                or node.func.id not in FUNCTIONS
                or len(node.args) != 2
                or node.keywords
            )
            number = isinstance(node, ast.Constant) and not (
                isinstance(node.value, int) and node.value < 2**63
            )
            if call or number or not isinstance(node, _NODES):
                raise InputError(
                    f"{where}: expected integers, names, + - * // % **, comparisons, and, or, not, if-else, "
                    f"cdiv, min and max, got {source!r}"
                )
        called = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
        names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in called}
        return cls(source, frozenset(names), tree.body)

    def __call__(self, values: Values, where: str) -> Int64[np.ndarray, " n"]:
        """Evaluate in n configurations. InputError for a name without value, a division by zero,
        or a number beyond 64 bits."""
        if missing := sorted(self.names - set(values)):
            raise InputError(f"{where}: {missing[0]!r} in {self.text!r} is no parameter, size or loop bound")
        count = len(next(iter(values.values()))) if values else 1
        with np.errstate(divide="raise", over="raise"):
            try:
                found = np.asarray(_evaluate(self._tree, {n: values[n] for n in self.names}, count), np.int64)
            except (FloatingPointError, ZeroDivisionError, OverflowError, ValueError):
                raise InputError(f"{where}: {self.text!r} divides by zero or overflows") from None
        return np.broadcast_to(found, (count,))


def check_depth(tree: ast.AST) -> None:
    """Raises ValueError where an expression has more than `DEPTH` levels."""
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH):
        level = [inner for outer in level for inner in ast.iter_child_nodes(outer)]
    if level:
        raise ValueError


def _evaluate(node: ast.expr, values: Values, count: int) -> Any:
    """As Python would for one configuration, for `count` at once: a branch is evaluated where it is taken."""

    def of(part: ast.expr) -> Any:
        return _evaluate(part, values, count)

    def where(chosen: np.ndarray, part: ast.expr) -> Any:
        return _evaluate(part, {name: v[chosen] for name, v in values.items()}, int(chosen.sum()))

    match node:
        case ast.Name():
            return values[node.id]
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](of(node.operand))
        case ast.BinOp():
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        case ast.Call(func=ast.Name(id=name)):
            return FUNCTIONS[name](*map(of, node.args))
        case ast.Compare():
            terms = [of(term) for term in (node.left, *node.comparators)]
            pairs = zip(node.ops, terms, terms[1:], strict=False)
            return _number(np.logical_and.reduce([_OPERATORS[type(op)](a, b) for op, a, b in pairs]))
        case ast.BoolOp():
            decided = isinstance(node.op, ast.Or)
            result = np.full(count, not decided)
            for term in node.values:
                open_ = result != decided
                result[open_] = np.asarray(where(open_, term)) != 0
            return _number(result)
        case ast.IfExp():
            chosen = np.broadcast_to(np.asarray(of(node.test)) != 0, (count,))
            result = np.empty(count, np.int64)
            for rows, part in ((chosen, node.body), (~chosen, node.orelse)):
                result[rows] = where(rows, part)
            return result
        case _:
            assert isinstance(node, ast.Constant)
            return np.int64(cast(int, node.value))
