"""Trip counts and value ranges of the loops around a statement.

Every loop of a nest becomes a `Space`: how often it runs on average, which values its iterator
takes, and how the iterator is composed of the counters (0, 1, 2, ...) of the loops that drive it, so
that a tiled loop `for i in range(ii, min(ii + T, N))` is seen as i = ii + k.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gnnperf.errors import InputError
from gnnperf.nests.affine import Affine, affine
from gnnperf.nests.analysis import extent, is_data_dependent
from gnnperf.nests.ir import Buffer, Expr, Loop, Op, Symbol, expressions_of, loads, symbols
from gnnperf.nests.trip_counts import mean_trips

Range = tuple[float, float]
"""Least and greatest value, both included."""


@dataclass(eq=False)
class Space:
    """One loop in its place.

    total: iterations over the whole nest, unknown trip counts taken as one.
    trips: mean trip count; None where it depends on data and was not measured.
    range: values the iterator takes; None where they depend on data.
    counters: iterator = start + sum(coefficient * counter of that loop), by loop.
    governs: the loops whose counters the iterator's values depend on, itself included.
    selects: loops that choose the range of values through bounds loaded from memory (the rows of a
    sparse matrix): no two of their iterations can be assumed to visit the same values.
    """

    loop: Loop
    depth: int
    total: float
    trips: float | None
    range: Range | None
    counters: Mapping[Space, int] = field(default_factory=dict)
    governs: frozenset[Space] = frozenset()
    selects: frozenset[Space] = frozenset()

    @property
    def axis(self) -> str:
        """Axis of the tensor instruction that covers the loop, or "none"."""
        return self.loop.annotation.axis if self.loop.annotation else "none"


def enter(
    loop: Loop,
    around: Sequence[Space],
    buffers: Mapping[str, Buffer],
    parameters: Mapping[str, int],
) -> Space:
    """The space of `loop` inside the loops `around` it (outermost first).

    parameters: value of every symbol that is no iterator.
    """
    by_name = {s.loop.iterator: s for s in around}
    drivers = {by_name[n] for e in (loop.start, loop.stop) for n in symbols(e) if n in by_name}
    data = is_data_dependent(loop)
    if data or loop.condition is not None or any(s.trips is None for s in drivers):
        trips = loop.measured_trips
    elif any(is_data_dependent(s.loop) for d in drivers for s in d.governs):  # and measured
        length = extent(loop, parameters)
        trips = loop.measured_trips if length is None else float(length)
    else:
        trips = mean_trips(loop, [s.loop for s in around], parameters)
    own = Space(
        loop,
        len(around),
        (around[-1].total if around else 1.0) * (1.0 if trips is None else trips),
        trips,
        None if data else _iterator_range(loop, trips, bool(drivers), around, parameters),
    )
    own.counters = {own: loop.step, **dict(_tile_counters(loop, trips, by_name))}
    own.governs = frozenset({own}).union(*(s.governs for s in drivers))
    bounds = tuple(expressions_of(loop))
    chosen = {s for e in bounds for s in influences(e, around, buffers)} if data else set()
    own.selects = frozenset(chosen).union(*(s.selects for s in drivers))
    return own


def interval(expr: Expr, around: Sequence[Space], parameters: Mapping[str, int]) -> Range | None:
    """Bounds of an integer expression over all iterations; None where data decides."""
    return form_interval(affine(expr), around, parameters)


def form_interval(form: Affine, around: Sequence[Space], parameters: Mapping[str, int]) -> Range | None:
    """The same of an expression in affine form."""
    low = high = float(form.constant)
    for atom, coefficient in form.terms.items():
        found = _atom_interval(atom, around, parameters)
        if found is None:
            return None
        ends = coefficient * found[0], coefficient * found[1]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _atom_interval(atom: Expr, around: Sequence[Space], parameters: Mapping[str, int]) -> Range | None:
    if isinstance(atom, Symbol):
        space = find(atom.name, around)
        if space is not None:
            return space.range
        value = float(parameter(atom.name, parameters))
        return value, value
    if not isinstance(atom, Op):
        return None
    parts = [interval(a, around, parameters) for a in atom.args]
    ranges = [p for p in parts if p is not None]
    if len(ranges) < len(parts):
        return _bounded_by_modulus(atom, parts)
    if atom.name in ("min", "max"):
        pick = min if atom.name == "min" else max
        return pick(r[0] for r in ranges), pick(r[1] for r in ranges)
    if atom.name in ("floordiv", "div") and ranges[1][0] > 0:
        quotients = [math.floor(x / d) for x in ranges[0] for d in ranges[1]]
        return float(min(quotients)), float(max(quotients))
    if atom.name == "mod" and ranges[1][0] > 0:
        (low, high), last = ranges[0], ranges[1][1] - 1
        return (low, high) if low >= 0 and high <= last else (0.0, last)
    if atom.name == "mul":
        products = [a * b for a in ranges[0] for b in ranges[1]]
        return min(products), max(products)
    return None


def _bounded_by_modulus(atom: Op, parts: Sequence[Range | None]) -> Range | None:
    if atom.name == "mod" and parts[1] is not None and parts[1][0] > 0:
        return 0.0, parts[1][1] - 1
    return None


def product_of_trips(spaces: Iterable[Space]) -> float | None:
    """None where one is not known. Ordered, so that rounding does not depend on set order."""
    trips = [s.trips for s in sorted(spaces, key=lambda s: s.depth)]
    return None if None in trips else math.prod(t for t in trips if t is not None)


def influences(expr: Expr, around: Sequence[Space], buffers: Mapping[str, Buffer]) -> set[Space]:
    """Loops that may change the value of an expression; a register may have been set in any of them."""
    if any(is_register(buffers[load.buffer]) for load in loads(expr)):
        return set(around)
    found = {find(name, around) for name in symbols(expr)}
    return {counter for s in found if s is not None for counter in (*s.counters, *s.selects)}


def is_register(buffer: Buffer) -> bool:
    """A local scalar."""
    return buffer.scope == "local" and not buffer.shape


def find(name: str, around: Sequence[Space]) -> Space | None:
    """The innermost loop with that iterator."""
    for space in reversed(around):
        if space.loop.iterator == name:
            return space
    return None


def parameter(name: str, parameters: Mapping[str, int]) -> int:
    try:
        return parameters[name]
    except KeyError:
        known = ", ".join(sorted(parameters)) or "none"
        raise InputError(
            f"expected the symbol {name!r} to be an iterator in scope or a parameter of the nest, got "
            f"parameters {known}; specialise the symbol or give it a value in LoopNest.parameters"
        ) from None


def _iterator_range(
    loop: Loop, trips: float | None, varies: bool, around: Sequence[Space], parameters: Mapping[str, int]
) -> Range | None:
    start, stop = (interval(e, around, parameters) for e in (loop.start, loop.stop))
    if start is None or stop is None:
        return None
    if trips is not None and not varies:
        return start[0], start[0] + loop.step * max(trips - 1, 0)
    return start[0], max(start[0], stop[1] - 1)


def _tile_counters(
    loop: Loop, trips: float | None, by_name: Mapping[str, Space]
) -> Iterator[tuple[Space, int]]:
    """Counters of outer loops that `loop` starts from, where it continues where the last run ended.

    Runs of a point loop inside its tile loop do not overlap, so they traverse one axis together;
    those of a triangular loop do, and its iterator is better seen as independent of where it starts.
    """
    if trips is None:
        return
    for atom, coefficient in affine(loop.start).terms.items():
        if isinstance(atom, Symbol) and atom.name in by_name:
            outer = by_name[atom.name]
            if abs(coefficient) * outer.loop.step >= trips * loop.step:
                yield from ((s, coefficient * c) for s, c in outer.counters.items())
