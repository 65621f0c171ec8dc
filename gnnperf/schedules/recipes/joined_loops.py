"""Short loops that together run through memory without a gap are one long loop.

for c in 0..8:                          for c in 0..8:
    for i in 0..30:                         for j in 0..900:
        for j in 0..30:                         y[c, j] = x[c, j] * w[c]
            y[c, i, j] = x[c, i, j] * w[c]

What vectors and tiles leave over, they leave once then, not thirty times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.analysis import extent
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Symbol,
    expressions_of,
    loads,
    map_expr,
    map_node,
    symbols,
)

SHORT = 64
"""Iterations from which an inner loop is long enough on its own."""


@dataclass(frozen=True, eq=False)
class _Pair:
    """A loop and all that is in it, another loop, from 0 to `length`."""

    outer: Loop
    inner: Loop
    length: int

    def dimension(self, load: Load) -> int | None:
        """Which dimension the outer loop runs along, one element a step, while the inner one runs along the
        next."""
        for dimension, (index, following) in enumerate(zip(load.indices, load.indices[1:], strict=False)):
            if affine(index).terms == {Symbol(self.outer.iterator): 1}:
                return dimension if following == Symbol(self.inner.iterator) else None
        return None


_Use = tuple[Expr, tuple[_Pair, ...]]
"""An expression of a nest, and the pairs that it is inside of."""


def join_short_loops(nest: LoopNest) -> LoopNest:
    """The nest with its short contiguous loops joined. The outermost loop of those that threads may share
    stays apart, so that recipes share and fuse the loop that they would without."""
    while True:
        uses = [use for node in nest.body for use in _uses(node, (), False)]
        pairs = dict.fromkeys(pair for _, around in uses for pair in around)
        plans = (_together(pair, uses, nest.buffers) for pair in reversed(pairs))
        if (plan := next((p for p in plans if p is not None), None)) is None:
            return nest
        nest = _join(nest, *plan)


def _uses(node: Node, around: tuple[_Pair, ...], inside: bool) -> Iterator[_Use]:
    """inside: is there a loop around the node that threads may share?"""
    yield from ((expr, around) for expr in expressions_of(node))
    if not isinstance(node, Loop):
        return
    if inside and (pair := _pair(node)):
        around = (*around, pair)
    inside = inside or (node.independent and extent(node) != 1)
    for child in node.body:
        yield from _uses(child, around, inside)


def _pair(outer: Loop) -> _Pair | None:
    inner = outer.body[0] if len(outer.body) == 1 else None
    if not isinstance(inner, Loop) or outer.independent != inner.independent:
        return None
    length, is_fixed = extent(inner), constant(outer.start) is not None and extent(outer) is not None
    if not is_fixed or constant(inner.start) != 0 or length is None or not 1 < length < SHORT:
        return None
    return _Pair(outer, inner, length) if outer.step == inner.step == 1 else None


_Merged = dict[tuple[str, int], int]
"""(buffer, dimension) -> length of the next dimension, which it becomes one with."""


def _together(
    first: _Pair, uses: Sequence[_Use], buffers: Mapping[str, Buffer]
) -> tuple[set[_Pair], _Merged] | None:
    """What must be joined so that the first pair can be: whoever goes through an array of which two
    dimensions become one must go through both at once."""
    chosen: set[_Pair] = set()
    merged: _Merged = {}
    pending = [first]
    while pending:
        pair = pending.pop()
        if pair in chosen:
            continue
        chosen.add(pair)
        places = _places(pair, uses, buffers)
        if places is None:
            return None
        for buffer, dimension in places - merged.keys():
            merged[buffer, dimension] = pair.length
            for expr, around in uses:
                for load in (found for found in loads(expr) if found.buffer == buffer):
                    through = next((p for p in around if p.dimension(load) == dimension), None)
                    if through is None or through.length != pair.length:
                        return None
                    pending.append(through)
    loops = [id(loop) for pair in chosen for loop in (pair.outer, pair.inner)]
    return (chosen, merged) if len({*loops}) == len(loops) else None


def _places(pair: _Pair, uses: Sequence[_Use], buffers: Mapping[str, Buffer]) -> set[tuple[str, int]] | None:
    """Arrays and dimensions that a pair goes through; None where it does anything else."""
    found: set[tuple[str, int]] = set()

    def gone_through(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or (dimension := pair.dimension(expr)) is None:
            return expr
        if not _is_contiguous(buffers[expr.buffer], dimension, pair.length):
            return expr
        found.add((expr.buffer, dimension))
        return Load(expr.buffer, (*expr.indices[:dimension], *expr.indices[dimension + 2 :]))

    for expr, around in uses:
        if pair in around:
            left = symbols(map_expr(expr, gone_through))
            if {pair.outer.iterator, pair.inner.iterator} & left:
                return None
    return found or None


def _is_contiguous(buffer: Buffer, dimension: int, length: int) -> bool:
    step, inner = buffer.strides[dimension : dimension + 2]
    if not isinstance(step, int) or not isinstance(inner, int):
        return False
    return step == inner * length and buffer.shape[dimension + 1] == length


def _join(nest: LoopNest, pairs: set[_Pair], merged: _Merged) -> LoopNest:
    outer = {id(pair.outer): pair for pair in pairs}

    def flat(expr: Expr) -> Expr:
        if not isinstance(expr, Load):
            return expr
        indices = list(expr.indices)
        for dimension, length in _of(expr.buffer, merged):
            ahead = Const(length * affine(indices[dimension]).constant)
            indices[dimension : dimension + 2] = [simplify(Op("add", (indices[dimension + 1], ahead)))]
        return Load(expr.buffer, tuple(indices))

    def joined(node: Node) -> Node:
        if not isinstance(node, Loop):
            return node
        pair = outer.get(id(node))
        body = tuple(joined(n) for n in (pair.inner if pair else node).body)
        if pair is None:
            return replace(node, body=body)
        start, stop = (simplify(Op("mul", (e, Const(pair.length)))) for e in (node.start, node.stop))
        return replace(pair.inner, start=start, stop=stop, body=body)

    buffers = {name: _flat_buffer(buffer, merged) for name, buffer in nest.buffers.items()}
    return replace(nest, body=tuple(map_node(joined(n), flat) for n in nest.body), buffers=buffers)


def _flat_buffer(buffer: Buffer, merged: _Merged) -> Buffer:
    shape, strides = list(buffer.shape), list(buffer.strides)
    for dimension, length in _of(buffer.name, merged):
        size = shape[dimension]
        whole = size * length if isinstance(size, int) else simplify(Op("mul", (size, Const(length))))
        shape[dimension : dimension + 2] = [whole]
        del strides[dimension]
    return replace(buffer, shape=tuple(shape), strides=tuple(strides))


def _of(buffer: str, merged: _Merged) -> list[tuple[int, int]]:
    """Dimensions of the buffer that become one with the next, the last first, and that one's length."""
    return sorted(((d, length) for (name, d), length in merged.items() if name == buffer), reverse=True)
