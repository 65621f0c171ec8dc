"""Sums and extremes under a condition on data, without the branch.

if mask[i]:                    s += mask[i] ? x[i] : 0
    s += x[i]

The condition costs an operation in place of a branch, and the sum becomes one that vectors add up.
"""

from __future__ import annotations

from dataclasses import replace

from gnnperf.nests.ir import Loop, LoopNest, Node, Op
from gnnperf.schedules.recipes.accumulate import identity
from gnnperf.schedules.recipes.in_vain import is_harmless


def unconditional(nest: LoopNest) -> LoopNest:
    """The nest with such reductions written so, where their terms may be computed in vain."""

    def changed(node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(map(changed, node.body)))
        guard = node.guard
        if guard is None or node.reduce is None:
            return node
        if not is_harmless(node.value, guard) or not is_harmless(node.target, guard):
            return node
        neutral = identity(node.reduce, nest.buffers[node.target.buffer].dtype)
        return replace(node, value=Op("select", (guard, node.value, neutral)), guard=None)

    return replace(nest, body=tuple(map(changed, nest.body)))
