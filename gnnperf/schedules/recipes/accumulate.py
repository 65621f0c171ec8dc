"""Local accumulators: partial results stay in registers (or on the stack) while a reduction runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gnnperf.devices import VectorUnit
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import varies
from gnnperf.nests.ir import (
    Annotation,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    loads,
    row_major,
)
from gnnperf.schedules.recipes.initial_values import init_statements

if TYPE_CHECKING:
    from gnnperf.schedules.recipes.lower import BandLowering, Range

MAX_ACCUMULATOR_ELEMENTS = 8192

_INT_RANGE = {
    f"{sign}int{bits}": (0 if sign else -(2 ** (bits - 1)), 2 ** (bits - (not sign)) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}


def identity(reduction: str, dtype: str) -> Const:
    """The neutral element of a reduction."""
    if reduction in ("add", "mul"):
        value = 0 if reduction == "add" else 1
        return Const(float(value) if dtype.startswith(("float", "complex")) else value)
    if dtype.startswith("float"):
        return Const(math.inf if reduction == "min" else -math.inf)
    if dtype == "bool":
        return Const(reduction == "min")
    low, high = _INT_RANGE[dtype]
    return Const(high if reduction == "min" else low)


@dataclass(frozen=True)
class Accumulators:
    """What surrounds the reduction loops: `prologue` initialises, `epilogue` writes back."""

    prologue: tuple[Node, ...]
    epilogue: tuple[Node, ...]
    inner_statements: list[Statement]

    @staticmethod
    def create(
        lowering: BandLowering, position: int, ranges: Mapping[str, Range], statements: list[Statement]
    ) -> Accumulators | None:
        """None where the points left are too many, or unbounded, to keep locally."""
        remaining = lowering.remaining(position)
        names = [n for n in remaining if lowering.roles.role(n) in "Pqp"]
        names.sort(key=lambda n: (n == lowering.vector, lowering.roles.role(n) == "p"))  # lanes adjoin
        moving = [n for n in remaining if n not in names]
        if any(ranges[n].limit is None for n in names):
            return None
        sizes = {n: ranges[n].limit or 1 for n in names}
        lane_iterator = lowering.vector if lowering.vector_role == "r" else None
        if math.prod(sizes.values()) > MAX_ACCUMULATOR_ELEMENTS:
            return None
        whole = position == lowering.reduction_from
        prologue: list[Node] = []
        epilogue: list[Node] = []
        inner: list[Statement] = []
        written = {s.target.buffer for s in statements}
        for statement in statements:
            target = lowering.buffers[statement.target.buffer]
            chosen = (ld.buffer for index in statement.target.indices for ld in loads(index))
            one_place = not any(varies(statement.target, n) for n in moving) and written.isdisjoint(chosen)
            if statement.reduce is None or target.name in lowering.own or not one_place:
                before, plain = init_statements(lowering, position, ranges, [statement])
                prologue.extend(before)
                inner.extend(plain)
                continue
            dims = [n for n in names if varies(statement.target, n)]
            here = lowering.names.fresh("acc")
            lowering.buffers[here] = _local(here, target.dtype, [sizes[n] for n in dims])
            cell = Load(here, tuple(_relative(n, ranges) for n in dims))
            neutral = identity(statement.reduce, target.dtype)
            init = statement.init if whole else None
            start = neutral if init is None else init
            prologue.extend(lowering.point_loops(dims, ranges, (Statement(cell, start),)))
            if lane_iterator is not None:
                width = max(1, lowering.recipe.register_r) * lowering.lanes
                lane_buffer = lowering.names.fresh("lanes")
                shape = [*(sizes[n] for n in dims), width]
                lowering.buffers[lane_buffer] = _local(lane_buffer, target.dtype, shape)
                lane = lowering.names.fresh("l")
                lane_cell = Load(lane_buffer, (*cell.indices, Symbol(lane)))
                clear = _lane_loop(lane, width, lowering.vectors, Statement(lane_cell, neutral))
                fold = _lane_loop(lane, width, lowering.vectors, Statement(cell, lane_cell, statement.reduce))
                prologue.extend(lowering.point_loops(dims, ranges, (clear,)))
                epilogue.extend(lowering.point_loops(dims, ranges, (fold,)))
                inner.append(_across_lanes(statement, Load(lane_buffer, cell.indices), lane_iterator))
            else:
                inner.append(replace(statement, target=cell, init=None))
            result = Statement(statement.target, cell, statement.reduce if init is None else None)
            epilogue.extend(lowering.point_loops(dims, ranges, (result,)))
        return Accumulators(tuple(prologue), tuple(epilogue), inner)


def _across_lanes(statement: Statement, lane_cell: Load, iterator: str) -> Statement:
    """The statement of a reduction that is vectorised along itself. The lane is `iterator - iterator_r`,
    relative to its register loop; in the scalar remainder, where both are equal, it is lane 0."""
    lane: Expr = Op("sub", (Symbol(iterator), Symbol(f"{iterator}_r")))
    return replace(statement, target=Load(lane_cell.buffer, (*lane_cell.indices, lane)), init=None)


def _relative(name: str, ranges: Mapping[str, Range]) -> Expr:
    return simplify(Op("sub", (Symbol(name), ranges[name].lo)))


def _local(name: str, dtype: str, shape: list[int]) -> Buffer:
    return Buffer(name, dtype, tuple(shape), row_major(shape), transient=True, scope="local")


def _lane_loop(lane: str, width: int, vectors: VectorUnit, statement: Statement) -> Loop:
    annotation = Annotation("vectorized", vector_bytes=vectors.bytes)
    return Loop(lane, Const(0), Const(width), (statement,), annotation=annotation)
