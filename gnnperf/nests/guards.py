"""Conditions on iterators become bounds of loops: iterations that do nothing are not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gnnperf.nests.affine import affine, simplify
from gnnperf.nests.analysis import conjunction, conjuncts
from gnnperf.nests.ir import Const, Expr, Loop, Node, Op, Statement, Symbol, walk
from gnnperf.nests.ranges import value_range

_AT_LEAST_ZERO = {"ge": (1, 0), "gt": (1, -1), "le": (-1, 0), "lt": (-1, -1)}
"""left ? right as sign * (left - right) + offset >= 0."""
_OPPOSITE = {"ge": "lt", "gt": "le", "le": "gt", "lt": "ge"}


def absorb_guards(
    body: tuple[Node, ...], around: Mapping[str, Sequence[Loop]] | None = None
) -> tuple[Node, ...]:
    """Loops whose statements all happen only where one and the same comparison holds run over the
    iterations in which it does, as far as it is affine in the iterator with coefficient 1 or -1.
    `around`: the loops that the body is in, by iterator."""
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
    rest = [c for c in conjuncts(node.guard) if c != condition]
    return replace(node, guard=conjunction(rest))
