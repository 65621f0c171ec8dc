"""Software prefetch of indirect loads (gathers, sparse rows)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.affine import affine, simplify
from gnnperf.nests.analysis import extent, mentions, varies
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, Op, Statement, Symbol, loads, substitute, walk

CACHE_LINE_BYTES = 64
MAX_LINES = 16
"""Lines fetched per load: as many as a register tile can hold."""


def prefetched(loop: Loop, distance: int, buffers: Mapping[str, Buffer]) -> Iterator[tuple[Load, int]]:
    """(load, elements past it) to fetch at the start of each iteration of `loop`: what its indirect
    loads will touch `distance` iterations later, line by line."""
    inner = {lp.iterator: lp for lp in walk(loop.body) if isinstance(lp, Loop)}
    seen: set[Load] = set()
    for node in walk(loop.body):
        if not isinstance(node, Statement):
            continue
        for load in loads(node.value):
            ahead = _ahead(load, loop.iterator, distance, inner, buffers)
            if ahead is None or ahead in seen:
                continue
            seen.add(ahead)
            element_bytes = ELEMENT_BYTES[buffers[load.buffer].dtype]
            lines = _contiguous(load, inner) * element_bytes // CACHE_LINE_BYTES
            for line in range(min(MAX_LINES, max(1, lines))):
                yield ahead, line * CACHE_LINE_BYTES // element_bytes


def _ahead(
    load: Load, iterator: str, distance: int, inner: Mapping[str, Loop], buffers: Mapping[str, Buffer]
) -> Load | None:
    """The load `distance` iterations later, inner loops at their start; None where it is not indirect,
    or where its subscript arrays could be read past their end."""
    nested = [ld for i in load.indices for ld in loads(i)]
    if not nested or not varies(load, iterator):
        return None
    bounds = [_last_iteration(ld, iterator, buffers) for ld in nested if varies(ld, iterator)]
    if any(b is None for b in bounds):
        return None
    later: Expr = Op("add", (Symbol(iterator), Const(distance)))
    if bounds:
        later = Op("min", (later, Const(min(b for b in bounds if b is not None))))
    values: dict[str, Expr] = {iterator: later}
    for name, lp in inner.items():
        values[name] = substitute(lp.start, values)
    moved = substitute(load, values)
    assert isinstance(moved, Load)
    depth_two = any(loads(j) for i in moved.indices for ld in loads(i) for j in ld.indices)
    return None if depth_two else moved


def _last_iteration(load: Load, iterator: str, buffers: Mapping[str, Buffer]) -> int | None:
    """Largest value of the iterator for which `load` stays inside its buffer, where that is plain."""
    result: int | None = None
    for index, size in zip(load.indices, buffers[load.buffer].shape, strict=True):
        if not mentions(index, iterator):
            continue
        form = affine(simplify(index))
        if result is not None or dict(form.terms) != {Symbol(iterator): 1} or not isinstance(size, int):
            return None
        result = size - 1 - form.constant
    return result


def _contiguous(load: Load, inner: Mapping[str, Loop]) -> int:
    """Elements that the inner loops touch from there on."""
    size = 1
    for name, lp in inner.items():
        if varies(load, name):
            size *= extent(lp) or 1
    return size
