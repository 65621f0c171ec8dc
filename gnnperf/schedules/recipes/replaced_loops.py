"""Loops of a nest with other nodes in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from gnnperf.nests.ir import Buffer, Loop, LoopNest, Node
from gnnperf.nests.names import Names

Replacement: TypeAlias = Callable[[dict[str, Buffer], Names], Iterable[Node]]
"""Makes the nodes, and adds buffers that they need, under names that nothing has yet."""


def replace_loops(nest: LoopNest, find: Callable[[Loop], Replacement | None]) -> LoopNest:
    """The nest with what is found for a loop in its place, and not for those inside it; the nest itself where
    nothing is."""
    found = {id(loop): made for loop in nest.loops() if (made := find(loop)) is not None}
    if not found:
        return nest
    names, buffers = Names.of(nest), dict(nest.buffers)

    def replaced(body: tuple[Node, ...]) -> Iterator[Node]:
        for node in body:
            if not isinstance(node, Loop):
                yield node
            elif id(node) in found:
                yield from found[id(node)](buffers, names)
            else:
                yield replace(node, body=tuple(replaced(node.body)))

    body = tuple(replaced(nest.body))
    return replace(nest, body=body, buffers=buffers)
