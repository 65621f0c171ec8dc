"""Columns several at a time: the contiguous loop of an imperfect nest is cut into strips, and the points
of a strip become the innermost loop of everything inside.

`for j: for i: (t = 0; for k: t += A[k, i] * B[k, j]; B[i, j] += t)` walks down one column of B after the
other. With strips of columns, rows of B are read as vectors, and `t` becomes a vector too.

Where steps of a loop inside wait for each other (`for c: for n: y[c, n] = s = a * s + x[c, n]`), some of what
is outside goes on side by side, contiguous or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import accesses, bound_dependences, extent, stride
from gnnperf.nests.coverage import carried
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
    expressions_of,
    loads,
    map_node,
    walk,
)
from gnnperf.nests.names import Names


def sinks(loop: Loop, buffers: Mapping[str, Buffer], own: frozenset[str]) -> bool:
    """Is the loop the one along which most arrays are contiguous, and may it be the innermost? `own`: local
    buffers of one of its iterations."""
    if not _may_sink(loop, own):
        return False
    inner = [n for n in walk(loop.body) if isinstance(n, Loop)]
    found = {a.load for a in accesses(loop) if a.load.buffer not in own}
    contiguous = {
        name: sum(stride(ld, name, buffers) == 1 for ld in found)
        for name in (loop.iterator, *(lp.iterator for lp in inner))
    }
    rows = contiguous.pop(loop.iterator)
    return rows > max(contiguous.values(), default=0)


def waits(loop: Loop, own: frozenset[str]) -> bool:
    """Is there a loop inside whose steps wait for each other, and may iterations of the outer one go on side
    by side in it? `own`: as of `sinks`."""
    inner = [n for n in walk(loop.body) if isinstance(n, Loop)]
    if not _may_sink(loop, own) or any(isinstance(s, Statement) and s.init for s in walk(loop.body)):
        return False
    return any(carried(lp.body) & own for lp in inner)


def _may_sink(loop: Loop, own: frozenset[str]) -> bool:
    """May the loop be the innermost?"""
    inner = [n for n in walk(loop.body) if isinstance(n, Loop)]
    if not loop.independent or loop.step != 1 or not extent(loop) or any(lp.condition for lp in inner):
        return False
    if any(loop.iterator in bound_dependences(lp) for lp in inner):
        return False
    return not any(ld.buffer in own for lp in inner for e in expressions_of(lp) for ld in loads(e))


def strips(
    loop: Loop,
    width: int,
    buffers: dict[str, Buffer],
    own: frozenset[str],
    names: Names,
    points: Annotation | None = None,
) -> tuple[Loop, ...]:
    """Loops over whole strips and over what is left; adds the strips of `own` to `buffers`. points: how the
    loops over a strip are run, where that is decided."""
    count = extent(loop)
    assert count is not None
    width = min(width, count)
    whole = count // width * width
    middle = simplify(Op("add", (loop.start, Const(whole))))
    parts = [(loop.start, middle, width)]
    if whole < count:
        parts.append((middle, loop.stop, count - whole))
    inside = replace(loop, annotation=points)
    return tuple(_strip(inside, *part, buffers, own, names) for part in parts)


def _strip(
    loop: Loop,
    start: Expr,
    stop: Expr,
    width: int,
    buffers: dict[str, Buffer],
    own: frozenset[str],
    names: Names,
) -> Loop:
    first = Symbol(names.fresh(f"{loop.iterator}_s"))
    points = replace(loop, start=first, stop=simplify(Op("add", (first, Const(width)))), body=())
    body = _sunk(loop.body, points)
    new = {name: names.fresh(name) for name in sorted(own)}
    wide = {name for name in own if sum(_is_used(name, lp) for lp in _point_loops(body, points)) > 1}
    for name in own:
        buffers[new[name]] = _widened(buffers[name], new[name], width if name in wide else 0)
    lane = simplify(Op("sub", (Symbol(loop.iterator), first)))

    def moved(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in own:
            return Load(new[expr.buffer], (*expr.indices, lane) if expr.buffer in wide else expr.indices)
        return expr

    inner = tuple(map_node(n, moved) for n in body)
    outside = replace(loop, iterator=first.name, annotation=None, tile_level=2)
    return replace(outside, start=start, stop=stop, step=width, body=inner)


def _widened(buffer: Buffer, name: str, width: int) -> Buffer:
    """The buffer under another name, with `width` elements for each of its own (0: as it is)."""
    if not width:
        return replace(buffer, name=name)
    steps = tuple(width * s if isinstance(s, int) else Op("mul", (Const(width), s)) for s in buffer.strides)
    return replace(buffer, name=name, shape=(*buffer.shape, width), strides=(*steps, 1), offset=0)


def _sunk(body: tuple[Node, ...], points: Loop) -> tuple[Node, ...]:
    """The body with a loop over the points of a strip around every run of statements."""
    nodes: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            nodes.append(replace(node, body=_sunk(node.body, points)))
        elif nodes and isinstance(nodes[-1], Loop) and nodes[-1].iterator == points.iterator:
            nodes[-1] = replace(nodes[-1], body=(*nodes[-1].body, node))
        else:
            nodes.append(replace(points, body=(node,)))
    return tuple(nodes)


def _point_loops(body: tuple[Node, ...], points: Loop) -> list[Loop]:
    return [n for n in walk(body) if isinstance(n, Loop) and n.iterator == points.iterator]


def _is_used(name: str, node: Node) -> bool:
    return any(a.load.buffer == name for a in accesses(node))
