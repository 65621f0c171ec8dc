"""Tensor instructions: what a tensorized block computes, and which loops its axes are.

A tensorized block calls an instruction on tiles of its buffers; the tiles, not the call, say what it is: one
that reads two tiles and accumulates into a third multiplies them, one that reads one tile moves it, one that
reads none fills it. The block becomes the loops that one instruction covers, with an axis each, and a
statement; `assigns` edges of the program graph follow from that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gnnperf.frontends.tvm.expressions import dtype_of
from gnnperf.frontends.tvm.translate import REDUCED, free_name
from gnnperf.nests import Annotation, Const, Expr, Load, Loop, Node, Op, Statement, Symbol

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.scheduled import ScheduledTranslator

AXES = ("m", "n", "k", "batch")

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
    """A region that the block reads or writes."""

    buffer: Any
    starts: tuple[Any, ...]
    sides: tuple[_Dimension, ...]


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
    axes = _axes(target, sources, translator)
    steps = _steps([target, *sources], axes, translator)
    extents = {a: d.extent for t, named in zip([target, *sources], axes, strict=True) for d, a in named}
    points = {a: free_name(f"tile_{a}", translator.iterators) for a in extents}
    for axis, name in points.items():
        translator.iterators.add(name)
        translator.extents[name] = extents[axis]
    places = [_load(t, named, points, translator) for t, named in zip([target, *sources], axes, strict=True)]
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
    buffer = region.source if hasattr(region, "source") else region.buffer
    ranges = list(region.region)
    sides = tuple(
        _Dimension(d, int(r.extent.value), _variables(r.min))
        for d, r in enumerate(ranges)
        if int(r.extent.value) > 1
    )
    return _Tile(buffer, tuple(r.min for r in ranges), sides)


def _variables(expr: Any) -> frozenset[int]:
    import tvm_ffi
    from tvm.ir import Var

    found: list[int] = []
    tvm_ffi.structural_walk(expr, [(Var, lambda v: found.append(v.__chandle__()))])
    return frozenset(found)


_Named = list[tuple[_Dimension, str]]


def _axes(target: _Tile, sources: Sequence[_Tile], translator: ScheduledTranslator) -> list[_Named]:
    """The axis of every side of every tile, C[m, n] += A[m, k] * B[k, n] in whatever layout.

    A side belongs to k where a reduction iterator moves its start, to an axis of the target where it shares
    an iterator with it; where neither tells, its extent or else its place does.
    """
    own = {1: ["n"], 2: ["m", "n"], 3: ["batch", "m", "n"]}.get(len(target.sides), [])
    result: list[_Named] = [list(zip(target.sides, own, strict=True))]
    for number, tile in enumerate(sources):
        if len(sources) == 1:  # a move: the same tile elsewhere
            result.append(list(zip(tile.sides, own[-len(tile.sides) :] if tile.sides else [], strict=True)))
            continue
        wanted = [a for a in own if a != ("n" if number == 0 else "m")] + ["k"]
        result.append(_named(tile, wanted, result[0], number, translator))
    return result


def _named(
    tile: _Tile, wanted: list[str], target: _Named, number: int, translator: ScheduledTranslator
) -> _Named:
    names: dict[int, str] = {}
    spatial = {a: d.iterators for d, a in target}
    extents = {a: d.extent for d, a in target}
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
    return [(side, names.get(side.position, "k")) for side in tile.sides]


def _steps(
    tiles: Sequence[_Tile], axes: Sequence[_Named], translator: ScheduledTranslator
) -> Mapping[str, tuple[str, ...]]:
    """By axis: the loops that the block's iterators of that axis are bound to.

    An iterator that moves no named side (where tiles are packed) belongs to the axis of what it moves: the
    target and the first operand along m, the target and the second along n, both operands along k.
    """
    found: dict[str, dict[str, None]] = {}
    named = {v: a for sides in axes for side, a in sides for v in side.iterators}
    known = {a for sides in axes for _, a in sides}
    moved = [frozenset[int]().union(*(_variables(s) for s in t.starts)) for t in tiles]
    for handle, (_, loops) in translator.block_iterators.items():
        axis = named.get(handle)
        if axis is None and len(tiles) == 3:
            axis = _MOVES.get(tuple(handle in m for m in moved))
        if axis in known and axis is not None:
            found.setdefault(axis, {}).update(dict.fromkeys(loops))
    return {axis: tuple(names) for axis, names in found.items()}


def _load(tile: _Tile, named: _Named, points: Mapping[str, str], translator: ScheduledTranslator) -> Load:
    """The element of a tile at the instruction's point."""
    along = {side.position: Symbol(points[axis]) for side, axis in named}
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
