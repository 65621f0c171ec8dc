"""Conditions on iterators become bounds of loops: iterations that do nothing are not run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.analysis import conjunction, conjuncts
from gnnperf.nests.ir import (
    Const,
    Expr,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    loads,
    substitute_node,
    symbols,
    walk,
)
from gnnperf.nests.ranges import value_range

_AT_LEAST_ZERO = {"ge": (1, 0), "gt": (1, -1), "le": (-1, 0), "lt": (-1, -1)}
"""left ? right as sign * (left - right) + offset >= 0."""
_OPPOSITE = {"ge": "lt", "gt": "le", "le": "gt", "lt": "ge"}


def absorb_guards(
    body: tuple[Node, ...], around: Mapping[str, Sequence[Loop]] | None = None
) -> tuple[Node, ...]:
    """Loops whose statements all happen only where one and the same comparison holds run over the
    iterations in which it does, as far as it is affine in the iterator with coefficient 1 or -1, or of such a
    remainder: every second one, of `(i + j) % 2 == color`. `around`: the loops that the body is in, by
    iterator."""
    return tuple(_absorbed(n, around or {}) if isinstance(n, Loop) else n for n in body)


def _absorbed(loop: Loop, around: Mapping[str, Sequence[Loop]]) -> Loop:
    statements = [n for n in walk(loop.body) if isinstance(n, Statement)]
    inside = {n.iterator for n in walk(loop.body) if isinstance(n, Loop)}
    shared = (
        [c for c in conjuncts(statements[0].guard) if all(c in conjuncts(s.guard) for s in statements)]
        if statements
        else []
    )
    for condition in shared:
        narrowed = _narrowed(loop, condition, inside, around)
        if narrowed is not None:
            loop = replace(narrowed, body=tuple(_without(condition, n) for n in narrowed.body))
        elif (every := _every(loop, condition, inside, around)) is not None:
            return _absorbed(every, around)
    return replace(loop, body=absorb_guards(loop.body, {**around, loop.iterator: [loop]}))


def _narrowed(
    loop: Loop, condition: Expr, inside: set[str], around: Mapping[str, Sequence[Loop]]
) -> Loop | None:
    """The loop over the iterations in which the condition holds; None where these are no range that is
    known ahead of the loop."""
    holds = not (isinstance(condition, Op) and condition.name == "not")
    comparison = condition if holds else condition.args[0]  # type: ignore[union-attr]
    if not isinstance(comparison, Op) or comparison.name not in _AT_LEAST_ZERO or loop.step != 1:
        return None
    sign, offset = _AT_LEAST_ZERO[comparison.name if holds else _OPPOSITE[comparison.name]]
    form = affine(Op("mul", (Const(sign), Op("sub", comparison.args))))
    coefficient = form.coefficient(loop.iterator)
    known = all(isinstance(atom, Symbol) and atom.name not in inside for atom in form.terms)
    if not known or coefficient not in (1, -1) or loop.condition is not None:
        return None
    # coefficient * iterator + rest >= 0
    whole = Op("add", (Op("mul", (Const(sign), Op("sub", comparison.args))), Const(offset)))
    rest = Op("sub", (whole, Op("mul", (Const(coefficient), Symbol(loop.iterator)))))
    if coefficient > 0:
        return replace(loop, start=_extreme("max", loop.start, Op("neg", (rest,)), around))
    return replace(loop, stop=_extreme("min", loop.stop, Op("add", (rest, Const(1))), around))


def _every(
    loop: Loop, condition: Expr, inside: set[str], around: Mapping[str, Sequence[Loop]]
) -> Loop | None:
    """The loop over every n-th iteration, those in which a remainder by n is what the condition says; None
    where that is not known ahead of the loop."""
    found = _remainder(condition)
    if found is None or loop.step != 1 or loop.condition is not None or loads(loop.start) or loads(loop.stop):
        return None
    of, n, wanted = found
    at, sign = Symbol(loop.iterator), affine(of).coefficient(loop.iterator)
    rest = simplify(Op("sub", (of, Op("mul", (Const(sign), at)))))
    low, high = value_range(wanted, around)
    if sign not in (1, -1) or low < 0 or high >= n:
        return None
    if any(loads(e) or symbols(e) & {loop.iterator, *inside} for e in (rest, wanted)):
        return None
    first = Op("mul", (Const(sign), Op("sub", (wanted, rest))))
    skipped = Op("mod", (simplify(Op("sub", (first, loop.start))), Const(n)))
    left = Op("sub", (Op("sub", (loop.stop, loop.start)), skipped))
    steps = Op("floordiv", (Op("add", (left, Const(n - 1))), Const(n)))
    least, most = value_range(steps, around)
    stop = Const(int(most)) if least == most else simplify(steps)
    moved = simplify(Op("add", (Op("add", (loop.start, skipped)), Op("mul", (Const(n), at)))))
    body = tuple(substitute_node(_without(condition, node), {loop.iterator: moved}) for node in loop.body)
    return replace(loop, start=Const(0), stop=stop, body=body)


def _remainder(condition: Expr) -> tuple[Expr, int, Expr] | None:
    """(a, n, b) of a condition that says `a % n == b`; of a remainder by two, also one that is not b."""
    negative = isinstance(condition, Op) and condition.name == "not"
    comparison = condition.args[0] if negative else condition  # type: ignore[union-attr]
    if isinstance(comparison, Op) and comparison.name == "mod":  # as a truth value
        negative, comparison = not negative, Op("eq", (comparison, Const(0)))
    if not isinstance(comparison, Op) or comparison.name not in ("eq", "ne"):
        return None
    negative ^= comparison.name == "ne"
    for remainder, wanted in (comparison.args, comparison.args[::-1]):
        if isinstance(remainder, Op) and remainder.name == "mod":
            n = constant(remainder.args[1])
            if n is not None and n > 1 and (not negative or n == 2):
                return remainder.args[0], n, Op("sub", (Const(1), wanted)) if negative else wanted
    return None


def _extreme(name: str, one: Expr, two: Expr, around: Mapping[str, Sequence[Loop]]) -> Expr:
    """The greater ("max") or smaller ("min") of two bounds; one of them, where it is known to be that."""
    low, high = value_range(Op("sub", (one, two)), around)
    if name == "min":
        low, high = -high, -low
    if low >= 0:
        return one
    return simplify(two if high <= 0 else Op(name, (one, two)))


def _without(condition: Expr, node: Node) -> Node:
    if isinstance(node, Loop):
        return replace(node, body=tuple(_without(condition, n) for n in node.body))
    return passing(node, [condition])


def passing(statement: Statement, conditions: Collection[Expr]) -> Statement:
    """The statement where these conditions hold."""
    return replace(statement, guard=conjunction(c for c in conjuncts(statement.guard) if c not in conditions))
