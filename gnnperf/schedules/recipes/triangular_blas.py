"""Triangular bands as a staircase: rectangles, which are BLAS routines, and what is left on the diagonal.

for i in 0..n, j in 0..i + 1:         for i_s in 0..n step 64:
    C[i, j] += ...                        rows i_s..i_s + 64, columns 0..i_s + 1: a rectangle
                                          rows i_s..i_s + 64, columns i_s + 1..i + 1: a small triangle
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.analysis import Band, access_counts, band, bound_dependences, extent, mentions, rebuild
from gnnperf.nests.ir import Buffer, Const, Expr, Loop, Node, Op, Symbol, substitute, substitute_node
from gnnperf.nests.ranges import longest
from gnnperf.nests.subscripts import canonical_subscripts
from gnnperf.schedules.recipes.blas import Call, match
from gnnperf.schedules.recipes.factorisation import match_factorisation
from gnnperf.schedules.recipes.triangular_solve import match_solve

STEP = 64
"""Rows of a rectangle: enough for the library to be fast, few enough to leave small triangles."""


def matches(node: Node, buffers: Mapping[str, Buffer]) -> Iterator[Call | Loop]:
    """What of the node, however deep inside imperfect loops, is a routine of a library, or mostly one: calls,
    loops around them, or loops that a single call stands for."""
    if not isinstance(node, Loop):
        return
    nest = band(node)
    own = access_counts((node,))
    if match_factorisation(node, buffers, own) or match_solve(node, buffers, own):
        yield node
    elif not nest.is_perfect:
        for child in nest.body if nest.loops else node.body:  # a loop that ends by a condition is no band
            yield from matches(child, buffers)
    elif calls := match(nest, buffers):
        yield from calls
    elif steps := staircase(node, buffers):
        yield steps


def staircase(node: Loop, buffers: Mapping[str, Buffer]) -> Loop | None:
    """The band as a loop over steps, without its initial values; None where it is not triangular, or its
    rectangles are no routine."""
    nest = _from_the_diagonal(band(node))
    pair = _pair(nest)
    if pair is None:
        return None
    outer, inner = pair
    most = longest(outer.start, outer.stop)
    if most is not None and most <= STEP:
        return None
    step = Symbol(f"{outer.iterator}_s")  # the small triangles may have tiles
    end: Expr = Op("add", (step, Const(STEP)))
    size = extent(outer)
    if size is None or size % STEP:
        end = Op("min", (end, outer.stop))
    rows = replace(outer, start=step, stop=end)
    last = Op("sub", (end, Const(1)))
    if _moves(inner.stop, outer):
        edge = simplify(substitute(inner.stop, {outer.iterator: step}))
        rectangle, triangle = (
            replace(inner, stop=edge),
            replace(inner, start=_later(inner.start, edge, outer)),
        )
    else:
        edge = simplify(substitute(inner.start, {outer.iterator: last}))
        rectangle, triangle = replace(inner, start=edge), replace(inner, stop=Op("min", (edge, inner.stop)))
    whole = _with(nest, {outer.iterator: rows, inner.iterator: rectangle})
    if not isinstance(whole, Loop) or not match(band(whole), buffers):
        return None
    rest = _with(nest, {outer.iterator: rows, inner.iterator: triangle})
    return Loop(step.name, outer.start, outer.stop, (whole, rest), STEP, tile_level=2)


def _from_the_diagonal(nest: Band) -> Band:
    """Loops that count columns from the diagonal on (j in 0..n - i, at i + j) count them from the first."""
    for loop in nest.loops:
        others = {lp.iterator for lp in nest.loops} & bound_dependences(loop)
        if len(others) != 1 or affine(loop.stop).coefficient(*others) != -1:
            continue
        row = Symbol(*others)
        values = {loop.iterator: Op("sub", (Symbol(loop.iterator), row))}
        counted = replace(
            loop,
            start=simplify(Op("add", (loop.start, row))),
            stop=simplify(Op("add", (loop.stop, row))),
        )
        body = tuple(canonical_subscripts(substitute_node(n, values)) for n in nest.body)
        nest = Band(tuple(counted if lp is loop else lp for lp in nest.loops), body)
    return nest


def _pair(nest: Band) -> tuple[Loop, Loop] | None:
    """The one loop with a bound that moves with another, after that other."""
    names = {lp.iterator: lp for lp in nest.loops}
    if not nest.is_perfect or any(lp.step != 1 or not lp.independent for lp in nest.loops):
        return None
    dependent = [lp for lp in nest.loops if bound_dependences(lp) & set(names)]
    if len(dependent) != 1:
        return None
    (inner,) = dependent
    others = bound_dependences(inner) & set(names)
    if len(others) != 1:
        return None
    outer = names[others.pop()]
    moving = [_moves(bound, outer) for bound in (inner.start, inner.stop)]
    fixed = inner.start if moving[1] else inner.stop
    if sum(moving) != 1 or mentions(fixed, outer.iterator):
        return None
    return outer, inner


def _moves(bound: Expr, outer: Loop) -> bool:
    """Is the bound the other iterator plus what stands still?"""
    terms = affine(bound).terms
    return terms.get(Symbol(outer.iterator)) == 1 and all(isinstance(atom, Symbol) for atom in terms)


def _later(start: Expr, edge: Expr, outer: Loop) -> Expr:
    """The greater of two bounds; the edge alone where even that of the first step is not before."""
    first = constant(Op("sub", (substitute(edge, {f"{outer.iterator}_s": outer.start}), start)))
    return edge if first is not None and first >= 0 else Op("max", (start, edge))


def _with(nest: Band, changed: Mapping[str, Loop]) -> Node:
    body = tuple(replace(s, init=None) for s in nest.statements)
    return rebuild([changed.get(lp.iterator, lp) for lp in nest.loops], body)[0]
