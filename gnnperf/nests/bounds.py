"""Accesses of a nest that its inputs may lead out of its arrays: subscripts that are data, or run over a loop
whose bounds are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gnnperf.nests.analysis import is_data_dependent, written
from gnnperf.nests.ir import (
    LAZY,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
    expressions_of,
    loads,
    symbols,
)

OUTSIDE = "outside_of_arrays"
"""Of the counting nest: how often each access would leave its array, int64[accesses]."""


@dataclass(frozen=True)
class DataAccess:
    """One dimension of an access.

    index: its subscript there; size: of the array. condition: under which it is evaluated; None: always.
    loops: those around it whose bounds are data, by iterator.
    """

    buffer: str
    axis: int
    index: Expr
    size: int | Expr
    condition: Expr | None
    loops: Mapping[str, Loop] = field(compare=False)

    @property
    def is_outside(self) -> Expr:
        size = Const(self.size) if isinstance(self.size, int) else self.size
        return Op("or", (Op("lt", (self.index, Const(0))), Op("ge", (self.index, size))))

    def stays_inside(self, data: Mapping[str, Any], changed: Collection[str]) -> bool:
        """Whether the smallest and largest values of the arrays show it at a glance: the subscript is an
        element of an array that is not in `changed`, or an iterator between such elements."""
        if not isinstance(self.size, int):
            return False

        def within(expr: Expr, most: int) -> bool:
            while isinstance(expr, Op) and expr.name.startswith("cast:"):
                (expr,) = expr.args
            if isinstance(expr, Const):
                return 0 <= expr.value.real <= most
            if not isinstance(expr, Load) or expr.buffer in changed or expr.buffer not in data:
                return False
            values = np.asarray(data[expr.buffer])
            return not values.size or bool(values.min() >= 0 and values.max() <= most)

        if isinstance(self.index, Symbol) and self.index.name in self.loops:
            loop = self.loops[self.index.name]
            return loop.condition is None and within(loop.start, self.size) and within(loop.stop, self.size)
        return within(self.index, self.size - 1)


def data_accesses(nest: LoopNest) -> list[DataAccess]:
    """Of every access whose subscripts depend on data, the dimensions in which they do."""
    return [access for node, loops in _nodes(nest.body, {}) for access in _of_node(node, nest.buffers, loops)]


def counting(nest: LoopNest) -> LoopNest:
    """The nest, doing only what stays inside of its arrays, and counting in `OUTSIDE` what would not, in the
    order of `data_accesses`."""
    count = 0

    def counted(node: Node, around: Mapping[str, Loop]) -> tuple[Node, ...]:
        nonlocal count
        accesses = _of_node(node, nest.buffers, around)
        counts: list[Node] = []
        for access in accesses:
            target = Load(OUTSIDE, (Const(count),))
            guard = _both(access.condition, access.is_outside)
            counts.append(Statement(target, Const(1), reduce="add", guard=guard))
            count += 1
        if isinstance(node, Loop):
            inside = {**around, node.iterator: node} if is_data_dependent(node) else around
            body = tuple(found for child in node.body for found in counted(child, inside))
            return (*counts, replace(node, body=body, annotation=None))
        guard = node.guard
        for access in accesses:
            left = Op("and", (access.condition, access.is_outside)) if access.condition else access.is_outside
            guard = _both(Op("not", (left,)), guard)
        return (*counts, replace(node, guard=guard))

    body = tuple(found for node in nest.body for found in counted(node, {}))
    buffer = Buffer(OUTSIDE, "int64", (max(1, count),), (1,))
    return replace(nest, body=body, buffers={**nest.buffers, OUTSIDE: buffer})


def changed_in(nest: LoopNest) -> set[str]:
    """Arrays that the nest writes."""
    return set().union(*map(written, nest.body))


def _nodes(body: Sequence[Node], around: Mapping[str, Loop]) -> Iterator[tuple[Node, Mapping[str, Loop]]]:
    """As `walk`, with the loops around whose bounds are data."""
    for node in body:
        yield node, around
        if isinstance(node, Loop):
            yield from _nodes(
                node.body, {**around, node.iterator: node} if is_data_dependent(node) else around
            )


def _of_node(node: Node, buffers: Mapping[str, Buffer], loops: Mapping[str, Loop]) -> list[DataAccess]:
    found: list[DataAccess] = []

    def visit(expr: Expr, condition: Expr | None) -> Expr | None:
        """Add its accesses; the condition under which all of them stay inside."""
        if isinstance(expr, Op) and expr.name in LAZY:  # in C++ only one side may run
            first, *rest = expr.args
            condition = visit(first, condition)
            branches = [first, Op("not", (first,))] if expr.name != "or" else [Op("not", (first,))]
            for branch, side in zip(branches, rest, strict=False):
                visit(side, _both(condition, branch))
            return condition
        if isinstance(expr, Op):
            for argument in expr.args:
                condition = visit(argument, condition)
        if isinstance(expr, Load):
            for index in expr.indices:
                condition = visit(index, condition)
            for axis, (index, size) in enumerate(zip(expr.indices, buffers[expr.buffer].shape, strict=True)):
                if loads(index) or symbols(index) & loops.keys():
                    access = DataAccess(expr.buffer, axis, index, size, condition, loops)
                    found.append(access)
                    condition = _both(condition, Op("not", (access.is_outside,)))
        return condition

    condition: Expr | None = None
    if isinstance(node, Statement) and node.guard is not None:
        condition = _both(visit(node.guard, None), node.guard)
    for expr in expressions_of(node):
        if not (isinstance(node, Statement) and expr is node.guard):
            visit(expr, condition)
    return list(dict.fromkeys(found))


def _both(first: Expr | None, second: Expr | None) -> Expr | None:
    if first is None or second is None:
        return first if second is None else second
    return Op("and", (first, second))
