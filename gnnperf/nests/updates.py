"""Boxes of one array that several nests add to, most of it all of them, in one sweep:

    for i in 0..n: y[i] = 0                    for i in 0..n:
    for i in 1..n: y[i] += f[i]                    y[i] = (f[i] if i >= 1 else 0) + (g[i] if i < n - 1 else 0)
    for i in 0..n - 1: y[i] += g[i]

as what flows into cells and out of them is added up, slice by slice. What several nests multiply, or take the
least or greatest of, is one sweep where all of them do all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gnnperf.nests.analysis import depends, rebuild, touched
from gnnperf.nests.dtypes import as_stored, literal
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, Node, Op, Symbol, equals_number, loads
from gnnperf.nests.normalise import minimise_strides
from gnnperf.nests.pieces import Bounds, Piece, filling, is_in, piece_of, size_of

MOST_OF_IT = 0.5
"""Share of what is written in all that each nest writes at least: borders stay on their own."""


@dataclass(frozen=True)
class _Update:
    """What a nest does to a box of an array."""

    piece: Piece
    box: Bounds


def joined_updates(body: Sequence[Node], buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """The nodes, where nests add to the same array in one sweep, also inside of sequential loops."""
    nodes = [
        replace(n, body=joined_updates(n.body, buffers)) if isinstance(n, Loop) and not n.independent else n
        for n in body
    ]
    position = 0
    while position < len(nodes):
        updates, places = _updates(nodes, position, buffers)
        if len(updates) > 1:
            nodes[position] = _in_one_sweep(updates, buffers)
            for place in reversed(places[1:]):
                del nodes[place]
        position += 1
    return tuple(nodes)


def _updates(
    nodes: Sequence[Node], position: int, buffers: Mapping[str, Buffer]
) -> tuple[list[_Update], list[int]]:
    """The node at this position, and later ones that may join it, with their positions; none if it is no
    update."""
    first = _update(nodes[position], buffers)
    if first is None:
        return [], []
    found, places = [first], [position]
    for place in range(position + 1, len(nodes)):
        node = nodes[place]
        if first.piece.target in touched(node):
            update = _update(node, buffers)
            if update is None or update.piece.target != first.piece.target:
                break
            if not _fit([*found, update]):
                break
            between = [nodes[i] for i in range(position + 1, place) if i not in places]
            if depends(between, [node]):
                break
            found.append(update)
            places.append(place)
    return found, places


def _update(node: Node, buffers: Mapping[str, Buffer]) -> _Update | None:
    piece = piece_of(node)
    if piece is None or not piece.nest.loops:
        return None
    buffer = buffers[piece.target]
    if buffer.scope != "global" or any(ld.buffer == piece.target for ld in loads(piece.statement.value)):
        return None
    box = piece.box()
    return None if box is None else _Update(piece, box)


def _fit(updates: Sequence[_Update]) -> bool:
    """May the nests share a sweep, and is it as good as one of theirs? All but the first change the array
    alike; that one writes all of it where it does not."""
    around = _around(updates)
    how = {update.piece.statement.reduce for update in updates} - {None}
    if len(how) != 1 or ("add" not in how and any(update.box != around for update in updates)):
        return False
    if any(size_of(update.box) < MOST_OF_IT * size_of(around) for update in updates):
        return False
    first, *others = updates
    writes_all = first.piece.statement.reduce is not None or first.box == around
    return writes_all and all(update.piece.statement.reduce is not None for update in others)


def _around(updates: Sequence[_Update]) -> Bounds:
    """The box around all of them."""
    boxes = [update.box for update in updates]
    return tuple((min(a for a, _ in ends), max(b for _, b in ends)) for ends in zip(*boxes, strict=True))


def _in_one_sweep(updates: Sequence[_Update], buffers: Mapping[str, Buffer]) -> Node:
    target, around = updates[0].piece.target, _around(updates)
    dtype = buffers[target].dtype
    indices = [Symbol(f"{target}_{d}") for d in range(len(around))]
    value: Expr | None = None
    for update in updates:
        term = as_stored(update.piece.value_at(indices), dtype, {dtype}, buffers)
        if update.box != around:
            term = Op("select", (is_in(update.box, around, indices), term, Const(literal(0, dtype))))
        how = update.piece.statement.reduce or "add"
        if value is None or (how == "add" and equals_number(value, 0)):
            value = term
        else:
            value = Op(how, (value, term))
    assert value is not None
    made = filling(Load(target, tuple(indices)), value, around, updates[0].piece.statement.reduce)
    return minimise_strides(rebuild(made.nest.loops, made.nest.body)[0], buffers)
