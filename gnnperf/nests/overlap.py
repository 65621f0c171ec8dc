"""Nests that share their loops over rows with margins: stencils of what stencils leave in scratch arrays.

Where a nest reads rows of a scratch array beside the one that it computes, its loop over rows cannot be
shared as it is (see `fusion.py`). A tile of rows then computes all rows of the scratch array that it reads,
those beyond its ends too, as its neighbours do: overlapped tiling (Krishnamoorthy et al., PLDI'07). Tiles
stay independent, and scratch arrays shrink to the rows of one tile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from gnnperf.nests.affine import constant, simplify
from gnnperf.nests.analysis import accesses, band, mentions, touched, written
from gnnperf.nests.coverage import flow
from gnnperf.nests.fusion import movable_outermost
from gnnperf.nests.ir import Buffer, Load, Loop, Node, Op, Symbol
from gnnperf.nests.ranges import Loops, loops_of, value_range

MOST_ROWS_AGAIN = 12
"""That a tile may compute beyond its own."""


@dataclass(frozen=True)
class Span:
    """Of a tile that has the rows from a to b: those from a + low to b + high."""

    low: int
    high: int

    @staticmethod
    def over(spans: Iterable[Span]) -> Span:
        """What holds all of them."""
        found = list(spans)
        return Span(min(span.low for span in found), max(span.high for span in found))

    def reading(self, other: Span) -> Span:
        """What all rows of this span read, when each reads those of the other."""
        return Span(self.low + other.low, self.high + other.high)


OWN = Span(0, 0)


@dataclass(frozen=True)
class Rows:
    """Rows of an array, which one of its dimensions counts."""

    dimension: int
    span: Span


@dataclass(frozen=True)
class Part:
    """A nest whose loop over rows has iterations from `start` to `stop`; iteration i computes row i + shift.
    touches: the rows of arrays that flow between nests, beside the one that it computes. span: what it
    computes of a tile."""

    node: Node
    loop: Loop
    start: int
    stop: int
    shift: int
    touches: Mapping[str, Rows]
    span: Span = OWN


@dataclass(frozen=True)
class Overlap:
    """Nests in program order, what a tile holds of scratch arrays, and the rows that tiles have to cover."""

    parts: tuple[Part, ...]
    scratch: Mapping[str, Rows]
    start: int
    stop: int

    @property
    def has_margins(self) -> bool:
        """Is anything computed twice?"""
        return any(part.span != OWN for part in self.parts)


def overlap(nodes: Sequence[Node], buffers: Mapping[str, Buffer], scratch: Collection[str]) -> Overlap | None:
    """How the nests share their loops over rows, or None where they cannot.

    scratch: arrays of no use after the nests. Every nest goes through a constant range of rows, all that
    flows between nests counts rows in one dimension, and what is read of scratch arrays lies at constant
    distances. All else is computed once: what one nest leaves in it, others touch in the same row alone.
    """
    written_to = {name for node in nodes for name in written(node)}
    flowing = {name for name in written_to if sum(name in touched(node) for node in nodes) > 1}
    found = [_part(node, buffers, flowing) for node in nodes]
    parts = [part for part in found if part is not None]
    if len(parts) < len(nodes):
        return None
    if len({(name, rows.dimension) for part in parts for name, rows in part.touches.items()}) > len(flowing):
        return None
    parts = _spread(parts, buffers, scratch)
    last = [part for part in parts if _leaves(part, buffers, scratch)]
    if not last or not all(_is_legal(part, part in last, scratch) for part in parts):
        return None
    if not flow(tuple(nodes)).exposed.isdisjoint(scratch):
        return None
    held = {
        name: Rows(part.touches[name].dimension, Span.over(p.span for p in parts if name in written(p.node)))
        for part in parts
        for name in part.touches.keys() & set(scratch)
    }
    start, stop = min(p.start + p.shift for p in last), max(p.stop + p.shift for p in last)
    return Overlap(tuple(parts), held, start, stop) if start < stop else None


def _part(node: Node, buffers: Mapping[str, Buffer], flowing: Collection[str]) -> Part | None:
    """The nest with its outermost loop; None where that may not run in any order, has no constant range, or
    does not address row by row what flows between nests."""
    loop = next(iter(movable_outermost(band(node), buffers)), None)
    if loop is None or loop.step != 1:
        return None
    start, stop = constant(loop.start), constant(loop.stop)
    if start is None or stop is None:
        return None
    places: dict[str, set[Rows]] = {}
    loops = loops_of((node,))
    own: set[Span] = set()
    for access in accesses(node):
        name = access.load.buffer
        if name in flowing:
            place = _place(access.load, loop.iterator, loops)
            if (
                place is None
                or buffers[name].scope == "local"
                or place.dimension == len(buffers[name].shape) - 1
            ):
                return None
            places.setdefault(name, set()).add(place)
            if access.is_write:
                own.add(place.span)
    if len(own) > 1 or any(len({rows.dimension for rows in of_one}) > 1 for of_one in places.values()):
        return None
    written_rows = own.pop() if own else OWN
    if written_rows.low != written_rows.high:
        return None
    back = Span(-written_rows.low, -written_rows.low)
    touches = {
        name: Rows(next(iter(of_one)).dimension, back.reading(Span.over(rows.span for rows in of_one)))
        for name, of_one in places.items()
    }
    return Part(node, loop, start, stop, written_rows.low, touches)


def _place(load: Load, iterator: str, loops: Loops) -> Rows | None:
    """The rows that an iteration of one of the loops accesses; None where that is no dimension's matter, or
    nobody knows how far away they are."""
    found: Rows | None = None
    for dimension, index in enumerate(load.indices):
        if not mentions(index, iterator):
            continue
        beside = simplify(Op("sub", (index, Symbol(iterator))))
        low, high = value_range(beside, loops)
        if found is not None or mentions(beside, iterator) or not (isfinite(low) and isfinite(high)):
            return None
        found = Rows(dimension, Span(int(low), int(high)))
    return found


def _spread(parts: Sequence[Part], buffers: Mapping[str, Buffer], scratch: Collection[str]) -> list[Part]:
    """The parts with the rows that each has to compute, for itself and for those after it."""
    spread: list[Part] = []
    for part in reversed(parts):
        wanted = [OWN] if _leaves(part, buffers, scratch) else []
        for later in spread:
            for name in written(part.node) & later.touches.keys() & set(scratch):
                wanted.append(later.span.reading(later.touches[name].span))
        spread.insert(0, replace(part, span=Span.over(wanted or [OWN])))
    return spread


def _leaves(part: Part, buffers: Mapping[str, Buffer], scratch: Collection[str]) -> bool:
    """Does it write what is of use after the nests?"""
    return any(buffers[name].scope == "global" and name not in scratch for name in written(part.node))


def _is_legal(part: Part, leaves: bool, scratch: Collection[str]) -> bool:
    """Is nothing but scratch computed twice, or touched in rows that other tiles write?"""
    kept = [rows.span for name, rows in part.touches.items() if name not in scratch]
    once = part.span == OWN and all(span == OWN for span in kept)
    return (once or not (leaves or kept)) and part.span.high - part.span.low <= MOST_ROWS_AGAIN
