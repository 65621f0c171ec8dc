"""Packing: copy the tile of an operand that inner loops will reuse into contiguous memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from gnnperf.nests.affine import affine, from_affine, simplify
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
    map_node,
    reads,
    substitute,
)  # fmt: skip

if TYPE_CHECKING:
    from gnnperf.schedules.recipes.lower import BandLowering, Range
    from gnnperf.schedules.recipes.plan import BandPlan

MAX_TILE_ELEMENTS = 1 << 17
"""A packed tile should live in the second-level cache."""
MAX_WHOLE_ELEMENTS = 1 << 25
"""An operand packed as a whole (a change of layout) may be this large."""


def pack_operands(
    lowering: BandLowering, ranges: Mapping[str, Range], statements: list[Statement], position: int
) -> tuple[Node, ...]:
    """Copies due before `position`, then the rest of the band, reading from the copies."""
    copies: list[Node] = []
    for load in lowering.packed.get(position, ()):
        packed = _pack(lowering, load, ranges)
        if packed is None:
            continue
        copy, replacement = packed
        copies.extend(copy)
        statements = [_redirect(s, load, replacement) for s in statements]
    return (*copies, *lowering.build(position, ranges, statements))


def packed_operands(lowering: BandPlan) -> list[Load]:
    """Affine loads that the recipe's `pack` classes name, in a fixed order."""
    roles = lowering.roles.by_role
    written = {s.target.buffer for s in lowering.band.statements}
    found: list[Load] = []
    if not lowering.recipe.pack or lowering.roles.sequential or lowering.roles.pinned:
        return []
    if any(s.guard is not None for s in lowering.band.statements):
        return []
    for statement in lowering.band.statements:
        for load in reads(statement):
            if load in found or load in lowering.guarded or load.buffer in written or not load.indices:
                continue
            if any(map(loads, load.indices)):
                continue
            classes = [c for c in lowering.recipe.pack if roles[c] and not varies(load, roles[c][0])]
            depends = sum(varies(load, name) for name in lowering.band.iterators)
            if classes and depends >= 2 and lowering.buffers[load.buffer].scope == "global":
                found.append(load)
    return found


def pack_position(lowering: BandPlan, load: Load) -> int:
    """After the last cache-tile loop that selects the operand's tile; 0 packs it as a whole."""
    tiles = [i for i, t in enumerate(lowering.tokens) if t.level == 2 and varies(load, t.iterator)]
    return tiles[-1] + 1 if tiles else 0


def _pack(
    lowering: BandLowering, load: Load, ranges: Mapping[str, Range]
) -> tuple[tuple[Node, ...], Load] | None:
    source = lowering.buffers[load.buffer]
    boxes = [box for index in load.indices if (box := _box(index, ranges)) is not None]
    if len(boxes) < len(load.indices):
        return None
    whole = pack_position(lowering, load) == 0
    if prod(limit for _, _, limit in boxes) > (MAX_WHOLE_ELEMENTS if whole else MAX_TILE_ELEMENTS):
        return None
    dimensions = [_dimension(lowering, *one) for one in zip(load.indices, boxes, strict=True)]
    axes = [axis for dimension in dimensions for axis in dimension.axes]
    inwards = [axis for number in _layout(lowering, load) for axis in dimensions[number].axes]
    strides = dict[str, int]()
    step = 1
    for axis in reversed(inwards):
        strides[axis.iterator] = step
        step *= axis.limit
    name = lowering.names.fresh("pack")
    lowering.buffers[name] = Buffer(
        name,
        source.dtype,
        tuple(axis.limit for axis in axes),
        tuple(strides[axis.iterator] for axis in axes),
        transient=True,
    )
    body: tuple[Node, ...] = (
        Statement(
            Load(name, tuple(Symbol(axis.iterator) for axis in axes)),
            Load(load.buffer, tuple(dimension.element for dimension in dimensions)),
        ),
    )
    for depth, axis in enumerate(reversed(inwards)):
        annotation = Annotation("simd") if depth == 0 else None
        body = (Loop(axis.iterator, Const(0), axis.count, body, annotation=annotation),)
    if whole and lowering.parallel_allowed and lowering.parallel_at is not None and isinstance(body[0], Loop):
        body = (replace(body[0], annotation=Annotation("parallel")),)
    return body, Load(name, tuple(axis.subscript for axis in axes))


@dataclass(frozen=True)
class _Axis:
    """Of a packed operand. subscript: where the band finds in it what it reads."""

    iterator: str
    count: Expr
    limit: int
    subscript: Expr


@dataclass(frozen=True)
class _Dimension:
    """Of the operand. element: what is copied, as a subscript over the iterators of the axes."""

    axes: tuple[_Axis, ...]
    element: Expr


def _dimension(lowering: BandLowering, index: Expr, box: tuple[Expr, Expr, int]) -> _Dimension:
    """One axis; where vectors would take every second or third element, two: the remainder, and what lies
    side by side then."""
    base, span, limit = box
    inside = simplify(Op("sub", (index, base)))
    step = affine(index).coefficient(lowering.vector) if lowering.vector else 0
    name = lowering.names.fresh("c")
    if step < 2:
        axis = _Axis(name, span, limit, inside)
        return _Dimension((axis,), simplify(Op("add", (base, Symbol(name)))))
    of, place = Const(step), lowering.names.fresh("c")
    whole, rest = map(from_affine, affine(inside).divided(step))
    count = Op("floordiv", (Op("sub", (Op("add", (span, Const(step - 1))), Symbol(name))), of))
    quotient = simplify(Op("add", (whole, Op("floordiv", (rest, of)))))
    axes = (
        _Axis(name, of, step, simplify(Op("mod", (rest, of)))),
        _Axis(place, simplify(count), -(-limit // step), quotient),
    )
    element = Op("add", (base, Op("add", (Op("mul", (of, Symbol(place))), Symbol(name)))))
    return _Dimension(axes, simplify(element))


def _box(index: Expr, ranges: Mapping[str, Range]) -> tuple[Expr, Expr, int] | None:
    """(lowest index, number of indices, bound of that number) over the ranges left."""
    form = affine(index)
    span: Expr = Const(1)
    limit = 1
    lowest: dict[str, Expr] = {}
    for atom, coefficient in form.terms.items():
        if not isinstance(atom, Symbol):
            return None
        if atom.name not in ranges:
            continue
        left = ranges[atom.name]
        if coefficient < 0 or left.limit is None:
            return None
        lowest[atom.name] = left.lo
        count: Expr = Op("sub", (left.hi, left.lo)) if left.size is None else Const(left.size)
        span = Op("add", (span, Op("mul", (Const(coefficient), Op("sub", (count, Const(1)))))))
        limit += coefficient * (left.limit - 1)
    return simplify(substitute(index, lowest)), simplify(span), limit


def _layout(lowering: BandLowering, load: Load) -> list[int]:
    """Dimensions outermost first: what the vector loop walks is contiguous, then what q walks."""
    roles = lowering.roles.by_role

    def key(dimension: int) -> tuple[bool, bool, int]:
        one = Load(load.buffer, (load.indices[dimension],))
        along_p = any(varies(one, name) for name in roles["p"])
        along_q = any(varies(one, name) for name in roles["q"])
        return (along_p, along_q, dimension)

    return sorted(range(len(load.indices)), key=key)


def _redirect(statement: Statement, load: Load, replacement: Load) -> Statement:
    result = map_node(statement, lambda e: replacement if e == load else e)
    assert isinstance(result, Statement)
    return result
