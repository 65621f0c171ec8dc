"""Independent loops are moved out of the sequential loops around them, where nothing forbids it.

`for k: (for i: ...; for i: ...)`, a sweep along k of columns i that never meet, becomes
`for i: for k: ...; ...`: one column after the other, or all columns at once on as many threads.
Products of matrices stay whole: row by row, every row would read the other matrix again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gnnperf.nests.analysis import (
    Band,
    accesses,
    band,
    bound_dependences,
    is_data_dependent,
    rebuild,
    varies,
    written,
)
from gnnperf.nests.fusion import alignment, movable_outermost, same_range, share
from gnnperf.nests.ir import Buffer, Loop, Node, expressions_of, loads


def independent_outside(node: Node, buffers: Mapping[str, Buffer]) -> Node:
    """The node with independent loops outside of sequential ones, as far as that is legal."""
    if not isinstance(node, Loop):
        return node
    node = replace(node, body=tuple(independent_outside(n, buffers) for n in node.body))
    moved: list[Loop] = []
    while not node.independent and (chosen := _shared_loop(node, buffers)) is not None:
        moved.append(chosen[0])
        node = replace(node, body=_without(node.body, chosen))
    return rebuild(moved, (node,))[0]


def _shared_loop(sequential: Loop, buffers: Mapping[str, Buffer]) -> list[Loop] | None:
    """One loop of every node inside, all over the same range, whose iterations never meet: whatever the
    sequential loop's body writes is addressed, wherever it is touched, by exactly the shared iterator
    (plus one and the same offset) in one and the same dimension."""
    nodes = sequential.body
    if not all(isinstance(n, Loop) for n in nodes):
        return None
    outer = {sequential.iterator}
    options = [
        [
            lp for lp in movable_outermost(band(n), buffers)
            if bound_dependences(lp).isdisjoint(outer) and not is_data_dependent(lp)
            and not _shares_matrix(lp, band(n))
        ]
        for n in nodes
    ]  # fmt: skip
    stored = {name for n in nodes for name in written(n)}
    if any(ld.buffer in stored for e in expressions_of(sequential) for ld in loads(e)):
        return None
    for lead in options[0] if options else []:
        chosen: list[Loop] = []
        places: dict[str, tuple[int, int]] = {}
        for node, loops in zip(nodes, options, strict=True):
            for loop in loops:
                found = _places(node, loop, stored, nodes, buffers)
                if same_range(loop, lead) and found is not None and _agree(places, found):
                    places |= found
                    chosen.append(loop)
                    break
            else:
                break
        if len(chosen) == len(nodes):
            return chosen
    return None


def _shares_matrix(loop: Loop, nest: Band) -> bool:
    """Do all iterations of a loop read one array that two other loops run over?"""
    others = [lp.iterator for lp in nest.loops if lp is not loop]
    return any(
        not varies(a.load, loop.iterator) and sum(varies(a.load, name) for name in others) > 1
        for s in nest.statements if s.reduce for a in accesses(s)
    )  # fmt: skip


def _places(
    node: Node, loop: Loop, stored: set[str], nodes: Sequence[Node], buffers: Mapping[str, Buffer]
) -> dict[str, tuple[int, int]] | None:
    """Stored buffer -> (dimension, offset) of the loop's iterator in all of its accesses in this node;
    None where one has no such place. Locals of this node alone belong to one iteration."""
    found: dict[str, tuple[int, int]] = {}
    for access in accesses(node):
        name = access.load.buffer
        if name not in stored or (buffers[name].scope == "local" and _only_in(node, name, nodes)):
            continue
        place = alignment(access.load, loop.iterator)
        if place is None or found.setdefault(name, place) != place:
            return None
    return found


def _only_in(node: Node, name: str, nodes: Sequence[Node]) -> bool:
    return not any(a.load.buffer == name for n in nodes if n is not node for a in accesses(n))


def _agree(one: Mapping[str, tuple[int, int]], two: Mapping[str, tuple[int, int]]) -> bool:
    return all(two.get(name, place) == place for name, place in one.items())


def _without(nodes: Sequence[Node], chosen: Sequence[Loop]) -> tuple[Node, ...]:
    """The nodes without their chosen loops, whose iterators take the name of the first."""
    inner: list[Node] = []
    for number, (node, loop) in enumerate(zip(nodes, chosen, strict=True)):
        stack = band(node)
        rest = rebuild([lp for lp in stack.loops if lp is not loop], stack.body)
        inner += [share(n, loop.iterator, chosen[0].iterator, number) for n in rest]
    return tuple(inner)
