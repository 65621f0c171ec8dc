"""Loops whose first or last iterations are special, as at periodic or clamped borders, in parts:

    for j in 0..n: y[j] = x[(j - 1) % n]      y[0] = x[n - 1]
                                              for j in 1..n: y[j] = x[j - 1]

What most iterations do is an access like any other then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from math import ceil, isfinite, prod

from gnnperf.nests.affine import affine, constant, from_affine
from gnnperf.nests.analysis import (
    Band,
    access_counts,
    band,
    extent,
    mentions,
    rebuild,
    rename_buffers,
    touched,
    varies,
)
from gnnperf.nests.coverage import own_of_iterations
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    expressions_of,
    map_expr,
    map_node,
    subexpressions,
    substitute_node,
    walk,
)
from gnnperf.nests.names import free_name
from gnnperf.nests.ranges import Loops, loops_of, value_range
from gnnperf.nests.subscripts import canonical_subscripts

SHORTEST = 8
"""A loop of fewer iterations stays whole."""
MOST_PARTS = 4
LARGE = 1 << 16
"""Iterations of a nest from which on its first and last rows are worth loops of their own, which threads take
a while to begin: those of fewer keep a choice for every row."""

_FIRST_BEYOND = {"lt": (0, 0), "ge": (0, 0), "gt": (1, 1), "le": (1, 1), "eq": (0, 1), "ne": (0, 1)}
"""Where a comparison with zero of what grows by one begins to turn, counted from its first zero on, and where
it has turned, counted from its last one on: loops within move the zero."""


def without_borders(body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """The nodes, with the innermost loop that places results in parts, where that decides comparisons,
    remainders and extremes."""
    return tuple(part for node in body for part in _parts(node, buffers))


def without_borders_or_rows(body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """The nodes `without_borders`, large ones without first and last rows."""
    nodes = without_borders(body, buffers)
    return tuple(p for n in nodes for p in (_parts(n, buffers, back=2) if _is_large(n) else (n,)))


def steps_without_borders(body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """The nodes, what is inside of sequential loops `without_borders_or_rows`. Not for nests that are still
    to be combined: what one part of a step hands on to others is in parts then, too."""
    return tuple(
        replace(n, body=without_borders_or_rows(steps_without_borders(n.body, buffers), buffers))
        if isinstance(n, Loop) and not n.independent
        else n
        for n in body
    )


def _is_large(node: Node) -> bool:
    return prod(extent(lp) or 0 for lp in band(node).loops) >= LARGE


def _parts(node: Node, buffers: Mapping[str, Buffer], back: int = 1) -> tuple[Node, ...]:
    """The node with one of its placing loops in parts, counted from the innermost."""
    nest = band(node)
    if not nest.is_perfect or not all(lp.independent and lp.step == 1 for lp in nest.loops):
        return (node,)
    stored = [s.target for s in nest.statements if buffers[s.target.buffer].scope == "global"]
    placing = [
        at for at, lp in enumerate(nest.loops) if stored and all(varies(t, lp.iterator) for t in stored)
    ]
    if len(placing) < back:
        return (node,)
    at = placing[-back]
    inside = nest.loops[at + 1 :]
    if any(extent(lp) is None for lp in inside):
        return (node,)
    expressions = [e for s in nest.statements for e in expressions_of(s)]
    pieces = _pieces(nest, at, expressions)
    if pieces is None:
        return (node,)
    parts: list[Node] = []
    for piece in pieces:
        loop = piece.loops[at]
        if extent(loop) == 1:
            body = rebuild((*piece.loops[:at], *piece.loops[at + 1 :]), piece.body)
            parts += (canonical_subscripts(substitute_node(n, {loop.iterator: loop.start})) for n in body)
        else:
            (one,) = rebuild(piece.loops, piece.body)
            parts += _parts(canonical_subscripts(one), buffers, back)  # what is inside of what was decided
    return tuple(parts)


def without_border_bounds(
    body: tuple[Node, ...], buffers: Mapping[str, Buffer]
) -> tuple[tuple[Node, ...], dict[str, Buffer]]:
    """The nodes, with a loop that places results in parts, where that decides how often loops inside run for
    most of its iterations, as of windows that end with the array:

        for j in 0..n, k in max(0, 1 - j)..min(3, n + 1 - j): y[j] += w[k] * x[j + k - 1]

    And the buffers: each part has scalars of its own.
    """
    made, known, counts = list[Node](), dict(buffers), access_counts(body)
    for node in body:
        local = {name for name in touched(node) if known[name].scope == "local"}
        own = own_of_iterations(node, buffers, counts) if isinstance(node, Loop) else set[str]()
        first, *others = _with_decided_bounds(node) if local == own else (node,)
        made.append(first)
        for part in others:
            names = {name: free_name(name, known) for name in local}
            known |= {new: replace(known[old], name=new) for old, new in names.items()}
            made.append(rename_buffers(part, names))
    return tuple(made), known


def _with_decided_bounds(node: Node) -> tuple[Node, ...]:
    nest = band(node)
    if not all(lp.independent and lp.step == 1 for lp in nest.loops):
        return (node,)
    targets = {s.target.indices for s in nest.statements if s.target.indices}
    bounds = [e for lp in _loops(nest) if extent(lp) is None for e in (lp.start, lp.stop)]
    placing = [
        at for at, lp in enumerate(nest.loops)
        if all(Symbol(lp.iterator) in target for target in targets)
        and any(mentions(e, lp.iterator) for e in bounds)
    ]  # fmt: skip
    if not targets or not placing:
        return (node,)
    target = next(iter(targets))
    at = max(placing, key=lambda at: target.index(Symbol(nest.loops[at].iterator)))
    pieces = _pieces(nest, at, bounds)
    decided = [p for p in pieces or () if all(extent(lp) is not None for lp in _loops(p)[at:])]
    longest = max((extent(p.loops[at]) or 0 for p in decided), default=0)
    if pieces is None or 2 * longest < (extent(nest.loops[at]) or 0):
        return (node,)
    return tuple(canonical_subscripts(rebuild(p.loops, p.body)[0]) for p in pieces)


def _loops(nest: Band) -> list[Loop]:
    return [*nest.loops, *(n for n in walk(nest.body) if isinstance(n, Loop))]


def _pieces(nest: Band, at: int, expressions: Iterable[Expr]) -> list[Band] | None:
    """The nest with one of its loops in parts, by what decides these expressions, without parts that do
    nothing; None where that are no parts, or too many."""
    loop, inside = nest.loops[at], nest.loops[at + 1 :]
    length, first = extent(loop), affine(loop.start)
    if length is None or length < SHORTEST or not first.is_constant:
        return None
    start, stop = first.constant, first.constant + length
    within = loops_of((*inside, *nest.body))
    cuts = {cut for e in expressions for cut in _cuts(e, loop.iterator, start, stop, within)}
    ends = sorted({start, stop, *(cut for cut in cuts if start < cut < stop)})
    if not 1 < len(ends) - 1 <= MOST_PARTS:
        return None
    pieces = []
    for begin, end in pairwise(ends):
        part = replace(loop, start=Const(begin), stop=Const(end))
        loops = {**within, loop.iterator: [part]}
        if body := _decided(nest.body, loops):
            pieces.append(Band((*nest.loops[:at], part, *(_bounded(lp, loops) for lp in inside)), body))
    return pieces


def _cuts(expr: Expr, iterator: str, start: int, stop: int, within: Loops) -> set[int]:
    """Iterations from which on something in the expression is decided otherwise, whatever the loops within
    are at."""
    cuts: set[int] = set()
    for e in subexpressions(expr):
        if not isinstance(e, Op) or e.name not in (*_FIRST_BEYOND, "min", "max", "mod") or len(e.args) != 2:
            continue
        form = affine(e.args[0] if e.name == "mod" else Op("sub", e.args))
        factor = form.coefficient(iterator)
        if not all(_is_bounded(atom, iterator, within) for atom in form.terms if atom != Symbol(iterator)):
            continue
        rest = value_range(
            Op("sub", (from_affine(form), Op("mul", (Const(factor), Symbol(iterator))))), within
        )
        if e.name in ("min", "max") and factor:
            cuts |= {ceil(-end / factor) for end in rest if isfinite(end)}
        elif e.name != "mod" and abs(factor) == 1:
            zeros = sorted(-factor * end for end in rest)
            begins, turned = _FIRST_BEYOND[e.name]
            after = (begins, turned) if factor > 0 else (1 - turned, 1 - begins)
            cuts |= {int(zero) + one for zero, one in zip(zeros, after, strict=True) if isfinite(zero)}
        elif e.name == "mod" and factor > 0 and (period := constant(e.args[1]) or 0) > 0:
            for end in map(int, filter(isfinite, rest)):
                rounds = range((factor * start + end) // period + 1, (factor * stop + end) // period + 1)
                cuts |= {-((end - r * period) // factor) for r in rounds[: MOST_PARTS + 2]}
    return cuts


def _is_bounded(atom: Expr, iterator: str, within: Loops) -> bool:
    """Are the ends of its range known, and the same in all iterations of the loop?"""
    if isinstance(atom, Symbol):
        return atom.name in within
    return isinstance(atom, Op) and atom.name == "mod" and not mentions(atom, iterator)


def _bounded(loop: Loop, loops: Loops) -> Loop:
    """The loop, where its bounds are decided."""
    decide = _decide(loops)
    return replace(loop, start=map_expr(loop.start, decide), stop=map_expr(loop.stop, decide))


def _decided(body: tuple[Node, ...], loops: Loops) -> tuple[Node, ...]:
    """The nodes, where what these iterations decide is decided, without what never happens."""
    made: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            if inner := _decided(node.body, loops):
                made.append(replace(_bounded(node, loops), body=inner))
            continue
        statement = map_node(node, _decide(loops))
        assert isinstance(statement, Statement)
        if statement.guard != Const(False):
            made.append(replace(statement, guard=None) if statement.guard == Const(True) else statement)
    return tuple(made)


def _decide(loops: Loops) -> Callable[[Expr], Expr]:
    """What an expression is in these iterations, whatever they are at."""

    def decide(e: Expr) -> Expr:
        match e:
            case Op("select", (Const(value=bool() as holds), one, other)):
                return one if holds else other
            case Op("not", (Const(value=bool() as holds),)):
                return Const(not holds)
            case Op("and" | "or" as name, (Const(value=bool() as holds), other)):
                return other if holds == (name == "and") else Const(holds)
            case Op("and" | "or" as name, (other, Const(value=bool() as holds))):
                return other if holds == (name == "and") else Const(holds)
            case Op("mod", (value, Const(value=int() as period))) if period > 0:
                low, high = value_range(value, loops)
                same = low // period == high // period
                return Op("sub", (value, Const(int(low // period) * period))) if same else e
            case Op(name, (one, other)) if name in (*_FIRST_BEYOND, "min", "max"):
                low, high = value_range(Op("sub", (one, other)), loops)
                return _compared(e, low, high)
        return e

    return decide


def _compared(e: Op, low: float, high: float) -> Expr:
    """A comparison, `min` or `max`, where the difference of the two is within these bounds."""
    one, other = e.args
    match e.name:
        case "min" | "max":
            less, greater = (one, other) if e.name == "min" else (other, one)
            return less if high <= 0 else greater if low >= 0 else e
        case "eq" | "ne":
            return Const((e.name == "eq") == (low == 0)) if low == high == 0 or low > 0 or high < 0 else e
        case "lt" | "ge":
            return Const((e.name == "lt") == (high < 0)) if high < 0 or low >= 0 else e
    return Const((e.name == "le") == (high <= 0)) if high <= 0 or low > 0 else e
