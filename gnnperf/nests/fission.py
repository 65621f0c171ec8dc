"""Maximal distribution of loops over what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gnnperf.nests.analysis import accesses, varies, written
from gnnperf.nests.ir import Buffer, Loop, Node


def fission(node: Node, buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """Distribute independent loops over their body, keeping nodes that share a local together.

    Sound because iterations of an independent loop may run in any order: all iterations of the
    first part may precede all of the second. A sequential loop is left whole.
    """
    if not isinstance(node, Loop):
        return (node,)
    body = tuple(part for child in node.body for part in fission(child, buffers))
    if not node.independent or _conflict_across_iterations(node, body, buffers):
        return (replace(node, body=body),)
    groups: list[list[Node]] = []
    for child in body:
        shared = _locals(child, buffers)
        users = (
            i for i, g in enumerate(groups) if any(not shared.isdisjoint(_locals(n, buffers)) for n in g)
        )
        first = next(users, len(groups))  # from the first user of a shared local on, all stay together
        groups[first:] = [[*(n for g in groups[first:] for n in g), child]]
    return tuple(replace(node, body=tuple(group)) for group in groups)


def _locals(node: Node, buffers: Mapping[str, Buffer]) -> set[str]:
    return {a.load.buffer for a in accesses(node) if buffers[a.load.buffer].scope == "local"}


def _conflict_across_iterations(loop: Loop, body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> bool:
    """A global scratch buffer that every iteration reuses (its accesses do not vary with the
    iterator) would be overwritten before the second part reads it."""
    for name in {w for n in body for w in written(n)}:
        if buffers[name].scope == "global" and buffers[name].transient:
            users = [a for n in body for a in accesses(n) if a.load.buffer == name]
            if len(users) > 1 and not all(varies(a.load, loop.iterator) for a in users):
                return True
    return False
