"""Stores that are overwritten before anybody reads them are left out.

for j in 0..n:                  for j in 0..1, for j in n - 1..n:
    B[j] = A[j]                     B[j] = A[j]
for j in 1..n - 1:              for j in 1..n - 1:
    B[j] = stencil(A)               B[j] = stencil(A)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.analysis import Band, band, read, rebuild
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, Node, Statement, Symbol, loads, symbols

WORTH_IT = 0.5
"""Share of a nest's stores that must be overwritten: what is left falls into as many nests as borders."""


@dataclass(frozen=True)
class _Stores:
    """A nest that stores a box of an array. places: by dimension the first and last element, exclusive, or
    the one that it stays at; loops: which of its loops runs along the dimension, and how far behind."""

    nest: Band
    target: Load
    places: Mapping[int, tuple[int, int] | Expr]
    loops: Mapping[int, tuple[Loop, int]]


def without_overwritten(body: Sequence[Node], buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """Nodes that run one after the other; those that store what a later one stores again, without that."""
    found: list[Node] = []
    for position, node in enumerate(body):
        stores = _stores(node)
        if stores is None or buffers[stores.target.buffer].scope != "global":
            found.append(node)
        else:
            found += _left(stores, body[position + 1 :]) or (node,)
    return tuple(found)


def _stores(node: Node) -> _Stores | None:
    if not isinstance(node, Loop):
        return None
    nest = band(node)
    if not nest.is_perfect or len(nest.body) != 1 or not isinstance(nest.body[0], Statement):
        return None
    statement = nest.body[0]
    if statement.reduce is not None or statement.guard is not None:
        return None
    if any(not lp.independent or lp.step != 1 or lp.condition is not None for lp in nest.loops):
        return None
    left = {lp.iterator: lp for lp in nest.loops}
    names = set(left)
    places: dict[int, tuple[int, int] | Expr] = {}
    loops: dict[int, tuple[Loop, int]] = {}
    for dimension, index in enumerate(statement.target.indices):
        form = affine(index)
        moving = [s.name for s in form.terms if isinstance(s, Symbol) and s.name in left]
        if not moving:
            if loads(index) or symbols(index) & names:
                return None  # it does not stay, or what it depends on may be stored in between
            places[dimension] = simplify(index)
            continue
        loop = left.pop(moving[0])
        if form.terms != {Symbol(loop.iterator): 1}:
            return None
        if constant(loop.start) is None or constant(loop.stop) is None:
            return None
        ahead = form.constant
        loops[dimension] = loop, ahead
        begin, end = _range(loop)
        places[dimension] = begin + ahead, end + ahead
    return None if left else _Stores(nest, statement.target, places, loops)


def _range(loop: Loop) -> tuple[int, int]:
    begin, end = constant(loop.start), constant(loop.stop)
    assert begin is not None and end is not None
    return begin, end


def _left(stores: _Stores, later: Sequence[Node]) -> tuple[Node, ...]:
    """What is left of a nest; () where that is all of it, or too much."""
    name = stores.target.buffer
    for node in later:
        if name in read(node):
            return ()
        again = _stores(node)
        if again is not None and again.target.buffer == name:
            return _borders(stores, again)
    return ()


def _borders(stores: _Stores, again: _Stores) -> tuple[Node, ...]:
    inside: dict[str, tuple[int, int]] = {}
    whole = {lp.iterator: _range(lp) for lp in stores.nest.loops}
    for dimension, place in stores.places.items():
        other = again.places[dimension]
        if dimension not in stores.loops:
            if place != other:
                return ()
            continue
        loop, ahead = stores.loops[dimension]
        if not isinstance(other, tuple):
            return ()
        begin, end = whole[loop.iterator]
        inside[loop.iterator] = max(begin, other[0] - ahead), min(end, other[1] - ahead)
    shares = [(inside[i][1] - inside[i][0]) / max(1, whole[i][1] - whole[i][0]) for i in whole]
    if min(shares, default=0.0) <= 0.0 or not WORTH_IT <= prod(shares) < 1.0:
        return ()
    pieces: list[Node] = []
    ranges = dict(whole)
    for loop in stores.nest.loops:
        (begin, end), (first, last) = whole[loop.iterator], inside[loop.iterator]
        for piece in ((begin, first), (last, end)):
            if piece[0] < piece[1]:
                pieces.append(_over(stores.nest, {**ranges, loop.iterator: piece}))
        ranges[loop.iterator] = first, last
    return tuple(pieces)


def _over(nest: Band, ranges: Mapping[str, tuple[int, int]]) -> Node:
    loops = [
        replace(lp, start=Const(ranges[lp.iterator][0]), stop=Const(ranges[lp.iterator][1]))
        for lp in nest.loops
    ]
    return rebuild(loops, nest.body)[0]
