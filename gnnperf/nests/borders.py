"""Loops whose first or last iterations are special, as at periodic or clamped borders, in parts:

    for j in 0..n: y[j] = x[(j - 1) % n]      y[0] = x[n - 1]
                                              for j in 1..n: y[j] = x[j - 1]

What most iterations do is an access like any other then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import isfinite, prod

from gnnperf.nests.affine import affine, constant, from_affine
from gnnperf.nests.analysis import band, extent, mentions, rebuild, varies
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
    map_node,
    subexpressions,
    substitute_node,
)
from gnnperf.nests.ranges import Loops, value_range
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
    around, loop, inside = nest.loops[:at], nest.loops[at], nest.loops[at + 1 :]
    length, first = extent(loop), affine(loop.start)
    if (
        length is None
        or length < SHORTEST
        or not first.is_constant
        or any(extent(lp) is None for lp in inside)
    ):
        return (node,)
    start, stop = first.constant, first.constant + length
    within: Loops = {lp.iterator: [lp] for lp in inside}
    expressions = [e for s in nest.statements for e in expressions_of(s)]
    cuts = {cut for e in expressions for cut in _cuts(e, loop.iterator, start, stop, within)}
    ends = sorted({start, stop, *(cut for cut in cuts if start < cut < stop)})
    if not 1 < len(ends) - 1 <= MOST_PARTS:
        return (node,)
    parts: list[Node] = []
    for begin, end in pairwise(ends):
        part = replace(loop, start=Const(begin), stop=Const(end))
        decided = [_decided(s, {loop.iterator: [part], **within}) for s in nest.statements]
        statements = tuple(s for s in decided if s.guard != Const(False))
        if not statements:
            continue
        if end - begin > 1:
            (one,) = rebuild((*around, part, *inside), statements)
            parts += _parts(canonical_subscripts(one), buffers, back)  # what is inside of what was decided
        else:
            body = rebuild((*around, *inside), statements)
            parts += (canonical_subscripts(substitute_node(n, {loop.iterator: Const(begin)})) for n in body)
    return tuple(parts)


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
        if e.name != "mod" and abs(factor) == 1:
            zeros = sorted(-factor * end for end in rest)
            begins, turned = _FIRST_BEYOND.get(e.name, (0, 0))
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


def _decided(statement: Statement, loops: Loops) -> Statement:
    """The statement, where what these iterations decide is decided."""

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

    made = map_node(statement, decide)
    assert isinstance(made, Statement)
    return replace(made, guard=None) if made.guard == Const(True) else made


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
