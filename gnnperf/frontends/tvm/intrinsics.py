"""Tensor instructions: what a tensorized block computes, and which loops its axes are.

A tensorized block calls an instruction on tiles of its buffers; the tiles, not the call, say what it is: one
that reads two tiles and accumulates into a third multiplies them, one that reads one tile moves it, one that
reads none fills it. The block becomes the loops that one instruction covers, with an axis each, and a
statement; `assigns` edges of the program graph follow from that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gnnperf.frontends.tvm.expressions import dtype_of
from gnnperf.nests import Annotation, Const, Expr, Load, Loop, Node, Op, Statement, Symbol
from gnnperf.nests.names import free_name
from gnnperf.schedules.traces.roles import REDUCED

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.scheduled import ScheduledTranslator

AXES = ("m", "n", "k", "batch")
WARP = "warp"
"""Scope of buffers in the registers of a warp's lanes."""

_MOVES: Mapping[tuple[bool, ...], str] = {
    (True, True, False): "m", (True, False, True): "n", (False, True, True): "k",
}  # fmt: skip
"""Which of target, first and second operand an axis of a product moves."""


@dataclass(frozen=True)
class _Dimension:
    """One side of a tile: which dimension of its buffer, how long, and the block's iterators in its start."""

    position: int
    extent: int
    iterators: frozenset[int]


@dataclass(frozen=True)
class _Tile:
    """A region that the block reads or writes. in_lanes: its elements are spread over the lanes of a warp,
    in an order that is the instruction's own affair; the sides are then lanes and elements of a lane."""

    buffer: Any
    starts: tuple[Any, ...]
    sides: tuple[_Dimension, ...]
    in_lanes: bool

    @property
    def elements(self) -> int:
        return math.prod(side.extent for side in self.sides)


@dataclass(frozen=True)
class _Placed:
    """A tile with an axis for every side, or, in lanes, the axes with their extents that it runs over."""

    tile: _Tile
    sides: tuple[tuple[_Dimension, str], ...]
    lanes: tuple[tuple[str, int], ...] = ()

    @property
    def extents(self) -> dict[str, int]:
        """By axis."""
        return {a: d.extent for d, a in self.sides} | dict(self.lanes)


def tensor_instruction(translator: ScheduledTranslator, block: Any) -> list[Node]:
    """The nodes of a tensorized block. Raises UnsupportedConstruct for one that is no product, move or fill
    of tiles."""
    if len(block.writes) != 1:
        raise translator.unsupported(f"a tensor instruction that writes {len(block.writes)} arrays")
    target = _tile(block.writes[0])
    reads = [_tile(r) for r in block.reads]
    sources = [t for t in reads if t.buffer.__chandle__() != target.buffer.__chandle__()]
    if len(sources) > 2 or len(target.sides) > 3:
        raise translator.unsupported(f"a tensor instruction of {len(sources)} operands")
    tiles = _placed(target, sources, translator)
    steps = _steps(tiles, translator)
    for loops in steps.values():  # outside of what the instruction covers
        for level, name in enumerate(reversed(loops), 1):
            translator.levels[name] = max(level, translator.levels.get(name, 0))
    extents: dict[str, int] = {}
    for tile in tiles:
        extents |= tile.extents
    points = {a: free_name(f"tile_{a}", translator.iterators) for a in extents}
    for axis, name in points.items():
        translator.iterators.add(name)
        translator.ranges[name] = (0, extents[axis] - 1)
    places = [_load(tile, points, translator) for tile in tiles]
    accumulates = len(reads) > len(sources)
    value = _value(places[1:], [t.buffer for t in sources], dtype_of(target.buffer))
    body: tuple[Node, ...] = (
        Statement(places[0], value, "add" if accumulates and len(sources) == 2 else None),
    )
    for axis in sorted(extents, key=AXES.index, reverse=True):
        note = Annotation(axis=cast(Any, axis), steps=steps.get(axis, ()))
        body = (Loop(points[axis], Const(0), Const(extents[axis]), body, annotation=note),)
    return list(body)


def _tile(region: Any) -> _Tile:
    ranges = list(region.region)
    sides = tuple(
        _Dimension(d, int(r.extent.value), _variables(r.min))
        for d, r in enumerate(ranges)
        if int(r.extent.value) > 1
    )
    in_lanes = str(region.source.scope()) == WARP
    return _Tile(region.source, tuple(r.min for r in ranges), sides, in_lanes)


def _variables(expr: Any) -> frozenset[int]:
    import tvm_ffi
    from tvm.ir import Var

    found: list[int] = []
    tvm_ffi.structural_walk(expr, [(Var, lambda v: found.append(v.__chandle__()))])
    return frozenset(found)


def _placed(target: _Tile, sources: Sequence[_Tile], translator: ScheduledTranslator) -> list[_Placed]:
    """The tiles with their axes, target first: C[m, n] += A[m, k] * B[k, n] in whatever layout."""
    tiles = [target, *sources]
    if not any(t.in_lanes for t in tiles):
        return _by_sides(target, sources, translator)
    if len(sources) == 2:
        c, a, b = (t.elements for t in tiles)
        m, n, k = (math.isqrt(x) for x in (c * a // b, c * b // a, a * b // c))
        over = [(("m", m), ("n", n)), (("m", m), ("k", k)), (("k", k), ("n", n))]
        return [_Placed(t, (), lanes) for t, lanes in zip(tiles, over, strict=True)]
    shapes = [tuple(d.extent for d in t.sides) for t in tiles if not t.in_lanes and len(t.sides) == 2]
    m, n = shapes[0] if shapes else (math.isqrt(target.elements),) * 2
    return [
        _Placed(t, (), (("m", m), ("n", n)))
        if t.in_lanes
        else _Placed(t, tuple(zip(t.sides, ("m", "n")[-len(t.sides) :], strict=True)))
        for t in tiles
    ]


def _by_sides(target: _Tile, sources: Sequence[_Tile], translator: ScheduledTranslator) -> list[_Placed]:
    """A side belongs to k where a reduction iterator moves its start, to an axis of the target where it
    shares an iterator with it; where neither tells, its extent or else its place does."""
    own = {1: ["n"], 2: ["m", "n"], 3: ["batch", "m", "n"]}.get(len(target.sides), [])
    first = _Placed(target, tuple(zip(target.sides, own, strict=True)))
    result = [first]
    for number, tile in enumerate(sources):
        if len(sources) == 1:  # a move: the same tile elsewhere
            names = own[-len(tile.sides) :] if tile.sides else []
            result.append(_Placed(tile, tuple(zip(tile.sides, names, strict=True))))
            continue
        wanted = [a for a in own if a != ("n" if number == 0 else "m")] + ["k"]
        result.append(_Placed(tile, _named(tile, wanted, first, number, translator)))
    return result


def _named(
    tile: _Tile, wanted: list[str], target: _Placed, number: int, translator: ScheduledTranslator
) -> tuple[tuple[_Dimension, str], ...]:
    names: dict[int, str] = {}
    spatial = {a: d.iterators for d, a in target.sides}
    extents = target.extents
    for side in tile.sides:
        kinds = {translator.block_iterators[v][0] for v in side.iterators if v in translator.block_iterators}
        if REDUCED in kinds:
            names[side.position] = "k"
            continue
        shared = [a for a in wanted if spatial.get(a, frozenset()) & side.iterators]
        if shared:
            names[side.position] = shared[0]
    for side in tile.sides:
        left = [a for a in wanted if a not in names.values()]
        if side.position not in names and left:
            alike = [a for a in left if extents.get(a) == side.extent]
            others = [s for s in tile.sides if s.position not in names and s.extent == side.extent]
            unsure = len(alike) != 1 or len(others) != 1
            order = left if number == 0 or len(left) == 1 else ["k", *(a for a in left if a != "k")]
            names[side.position] = order[0] if unsure else alike[0]
    return tuple((side, names.get(side.position, "k")) for side in tile.sides)


def _steps(tiles: Sequence[_Placed], translator: ScheduledTranslator) -> Mapping[str, tuple[str, ...]]:
    """By axis: the loops that the block's iterators of that axis are bound to.

    An iterator that moves no named side (where tiles are packed) belongs to the axis of what it moves: the
    target and the first operand along m, the target and the second along n, both operands along k.
    """
    found: dict[str, dict[str, None]] = {}
    named = {v: a for t in tiles for side, a in t.sides for v in side.iterators}
    known = {a for t in tiles for a in t.extents}
    moved = [frozenset[int]().union(*(_variables(s) for s in t.tile.starts)) for t in tiles]
    for handle, (_, loops) in translator.block_iterators.items():
        axis = named.get(handle)
        if axis is None and len(tiles) == 3:
            axis = _MOVES.get(tuple(handle in m for m in moved))
        if axis in known and axis is not None:
            found.setdefault(axis, {}).update(dict.fromkeys(loops))
    return {axis: tuple(names) for axis, names in found.items()}


def _load(placed: _Placed, points: Mapping[str, str], translator: ScheduledTranslator) -> Load:
    """The element of a tile at the instruction's point."""
    tile = placed.tile
    along: dict[int, Expr] = {side.position: Symbol(points[axis]) for side, axis in placed.sides}
    if placed.lanes:
        number: Expr = Const(0)
        for axis, extent in placed.lanes:
            number = Op("add", (Op("mul", (number, Const(extent))), Symbol(points[axis])))
        lane, element = tile.sides
        along[lane.position] = Op("floordiv", (number, Const(element.extent)))
        along[element.position] = Op("mod", (number, Const(element.extent)))
    name = translator.expression.names[tile.buffer.__chandle__()]
    indices: list[Expr] = []
    for position, start in enumerate(tile.starts):
        first = translator.expression(start)
        indices.append(Op("add", (first, along[position])) if position in along else first)
    return translator.workspaces.relative(tile.buffer, Load(name, tuple(indices)), translator)


def _value(loads: Sequence[Load], buffers: Sequence[Any], dtype: str) -> Expr:
    converted = [
        load if dtype_of(buffer) == dtype else Op(f"cast:{dtype}", (load,))
        for load, buffer in zip(loads, buffers, strict=True)
    ]
    if len(converted) == 2:
        return Op("mul", tuple(converted))
    return converted[0] if converted else Const(0)
