"""Sums under a condition on data, without the branch.

if mask[i]:                    s += mask[i] ? x[i] : 0
    s += x[i]

The condition costs an operation in place of a branch, and the sum becomes one that vectors add up.
"""

from __future__ import annotations

from dataclasses import replace

from gnnperf.nests.ir import Const, Expr, Load, Loop, LoopNest, Node, Op, children, loads, symbols

MOST_OPERATIONS = 4
"""Operations of a term that are cheaper done in vain than branched around."""


def unconditional(nest: LoopNest) -> LoopNest:
    """The nest with such sums written so. What a term reads must be there whether the condition holds or not:
    elements at places that depend on no data, under a condition that depends on data alone."""
    return replace(nest, body=tuple(map(_unconditional, nest.body)))


def _unconditional(node: Node) -> Node:
    if isinstance(node, Loop):
        return replace(node, body=tuple(map(_unconditional, node.body)))
    guard = node.guard
    if guard is None or node.reduce != "add" or _depends_on_place(guard) or not _is_harmless(node.value):
        return node
    return replace(node, value=Op("select", (guard, node.value, Const(0))), guard=None)


def _depends_on_place(expr: Expr) -> bool:
    """Is there a symbol outside of subscripts?"""
    if isinstance(expr, Load):
        return False
    return bool(symbols(expr)) if not children(expr) else any(map(_depends_on_place, children(expr)))


def _is_harmless(term: Expr) -> bool:
    direct = all(not loads(index) for load in loads(term) for index in load.indices)
    return direct and _operations(term) <= MOST_OPERATIONS


def _operations(term: Expr) -> int:
    if isinstance(term, Load):
        return 0
    return isinstance(term, Op) + sum(map(_operations, children(term)))
