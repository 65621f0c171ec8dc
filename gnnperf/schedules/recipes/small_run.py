"""Run a nest at a small size, to see what it computes.

Every constant near the size of its matrices is taken for that size: loops over affine ranges that compute the
same thing at several small sizes do so at any.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from gnnperf.errors import NotApplicable
from gnnperf.nests.ir import Const, Expr, Load, Node, Op, Statement, Symbol
from gnnperf.nests.ranges import separates
from gnnperf.schedules.recipes.initial_values import taken_ahead

Element: TypeAlias = tuple[str, tuple[int, ...]]
Memory: TypeAlias = dict[Element, float]

NEAR = 2
"""Constants this far from zero, or from the size, move with it."""

_BINARY: Mapping[str, Callable[[float, float], float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "min": min,
    "max": max, "pow": math.pow, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_UNARY: Mapping[str, Callable[[float], float]] = {"neg": operator.neg, "sqrt": math.sqrt, "abs": abs}
_INTEGER = {"add", "sub", "mul", "min", "max"}


@dataclass(frozen=True)
class SmallRun:
    """Runs nodes on `memory`, which has an entry for every element that may be read or was written.

    size: of the matrices as they are; small: what it becomes.
    """

    size: int
    small: int
    memory: Memory

    def run(self, node: Node) -> None:
        """Raises NotApplicable where the node reads what nobody wrote, or is of no kind known here; also
        ValueError and ArithmeticError, as its arithmetic does."""
        for part in _explicit(node):
            self._run(part, {})

    def _run(self, node: Node, at: dict[str, int]) -> None:
        if isinstance(node, Statement):
            self._store(node, at)
            return
        if node.condition is not None:
            raise NotApplicable("a while loop")
        for value in range(self._integer(node.start, at), self._integer(node.stop, at), node.step):
            for child in node.body:
                self._run(child, {**at, node.iterator: value})

    def _store(self, statement: Statement, at: dict[str, int]) -> None:
        if statement.guard is not None and not self._value(statement.guard, at):
            return
        element, value = self._element(statement.target, at), self._value(statement.value, at)
        if statement.reduce is not None:
            value = _BINARY[statement.reduce](self._load(element), value)
        self.memory[element] = value

    def _element(self, load: Load, at: dict[str, int]) -> Element:
        return load.buffer, tuple(self._integer(index, at) for index in load.indices)

    def _load(self, element: Element) -> float:
        try:
            return self.memory[element]
        except KeyError:
            raise NotApplicable("an element that nobody wrote") from None

    def _integer(self, expr: Expr, at: dict[str, int]) -> int:
        match expr:
            case Const(value=int(value)):
                near = [0, self.size, -self.size]
                for centre, moved in zip(near, (0, self.small, -self.small), strict=True):
                    if abs(value - centre) <= NEAR:
                        return value - centre + moved
            case Symbol(name=name) if name in at:
                return at[name]
            case Op(name="neg", args=(argument,)):
                return -self._integer(argument, at)
            case Op(name=name, args=(left, right)) if name in _INTEGER:
                return int(_BINARY[name](self._integer(left, at), self._integer(right, at)))
        raise NotApplicable("a subscript or bound that is not affine in the size")

    def _value(self, expr: Expr, at: dict[str, int]) -> float:
        match expr:
            case Const(value=int() | float() as number):
                return float(number)
            case Load():
                return self._load(self._element(expr, at))
            case Op(name=name, args=(left, right)) if name in _BINARY:
                return _BINARY[name](self._value(left, at), self._value(right, at))
            case Op(name=name, args=(argument,)) if name in _UNARY:
                return _UNARY[name](self._value(argument, at))
            case Op(name=name, args=(argument,)) if name.startswith("cast:float"):
                return self._value(argument, at)
        raise NotApplicable("an operation of another kind")


def _explicit(node: Node) -> tuple[Node, ...]:
    """The node with initial values of reductions written ahead of the outermost loop whose iterations meet in
    one element."""
    if isinstance(node, Statement):
        first = () if node.init is None else (Statement(node.target, node.init, guard=node.guard),)
        return (*first, replace(node, init=None))
    ahead, rest = taken_ahead(node, lambda statement: not separates(statement.target, node))
    return (*ahead, replace(rest, body=tuple(part for child in rest.body for part in _explicit(child))))
