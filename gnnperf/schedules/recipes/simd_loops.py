"""Loops that the compiler vectorises, with all that is done to an element in one of them.

simd for j: s[j] = 0                  simd for j: s = 0
simd for j: t[j] = 0                              s += a[j]
for k in 0..3:                                    s += a[j + 1]
  simd for j: t[j] += a[j + k]                    s += a[j + 2]
simd for j: s[j] += t[j]                          b[j] = s / 3
simd for j: b[j] = s[j] / 3

What a sum has so far stays in a register. With loops of their own, every term would fetch and store it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeGuard

from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import (
    access_counts,
    accesses,
    apart,
    extent,
    rename_buffers,
    rename_iterators,
    touched,
)
from gnnperf.nests.ir import (
    Const,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    map_node,
    substitute_node,
    symbols,
)

MOST_STATEMENTS = 32
"""In one loop: the terms of a point in space with its neighbours."""
LONGEST = 256
"""Elements of loops that are joined: of a strip. Whether longer ones are one is for a schedule to say."""


def gather_simd_loops(nest: LoopNest) -> LoopNest:
    """The nest with short loops inside of the loops over elements that they repeat, and with those of a strip
    as one; what such a loop alone needs of a strip is a variable in it."""
    body = _gathered(nest.body)
    counts, buffers = access_counts(body), dict(nest.buffers)

    def with_variables(node: Node) -> Node:
        if isinstance(node, Statement):
            return node
        if not _of_elements(node):
            return replace(node, body=tuple(map(with_variables, node.body)))
        own = {
            name
            for name, count in access_counts(node.body).items()
            if buffers[name].scope == "local"
            and counts[name] == count
            and _each_its_own(node.body, node, name)
        }
        buffers.update({name: replace(buffers[name], shape=(), strides=()) for name in own})
        loop = map_node(node, lambda e: Load(e.buffer) if isinstance(e, Load) and e.buffer in own else e)
        assert isinstance(loop, Loop)
        types = {name: buffers[name].dtype for name in own}
        return replace(loop, body=_without_second_sums(loop.body, types))

    return replace(nest, body=tuple(map(with_variables, body)), buffers=buffers)


def _without_second_sums(body: tuple[Node, ...], own: Mapping[str, str]) -> tuple[Node, ...]:
    """Variables that begin at 0 and get one sum are this sum. own: a loop's variables, with their types."""
    for at, node in enumerate(body):
        match node:
            case Statement(Load(buffer=total), Load(buffer=part), "add", None, None) if part in own:
                if own.get(total) != own[part]:
                    continue
                before = [n for n in body[:at] if total in touched(n)]
                begins = before == [Statement(Load(total), Const(0))]
                if begins and not any(part in touched(n) for n in body[at + 1 :]):
                    left = [n for n in body if n is not node and n is not before[0]]
                    return _without_second_sums(tuple(rename_buffers(n, {part: total}) for n in left), own)
    return body


def _gathered(body: tuple[Node, ...]) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            node = _turned_inside(replace(node, body=_gathered(node.body)))
        joined = _joined(nodes[-1], node) if nodes else None
        if joined is not None:
            nodes[-1] = joined
        else:
            nodes.append(node)
    return tuple(nodes)


def _turned_inside(loop: Loop) -> Loop:
    """The loop over elements that it repeats, with all turns inside; itself where it does something else."""
    turns, annotation = extent(loop), loop.annotation
    if turns is None or not loop.independent or (annotation and annotation.kind not in ("none", "unrolled")):
        return loop
    match loop.body:
        case (Loop() as inner,) if _of_elements(inner) and turns * len(inner.body) <= MOST_STATEMENTS:
            counters = [simplify(Op("add", (loop.start, Const(n * loop.step)))) for n in range(turns)]
            body = tuple(substitute_node(s, {loop.iterator: n}) for n in counters for s in inner.body)
            fixed = not any(loop.iterator in symbols(bound) for bound in (inner.start, inner.stop))
            if fixed and _each_its_own(body, inner):
                return replace(inner, body=body)
    return loop


def _joined(one: Node, other: Node) -> Loop | None:
    """Two loops over the same elements as one; None where they are not, or one needs more than an element of
    what the other makes."""
    if not (_of_elements(one) and _of_elements(other)):
        return None
    renamed = rename_iterators(other, {other.iterator: one.iterator})
    assert isinstance(renamed, Loop)
    both = replace(one, body=(*one.body, *renamed.body))
    alike = replace(renamed, body=one.body) == one
    short = (extent(one) or LONGEST + 1) <= LONGEST and len(both.body) <= MOST_STATEMENTS
    return both if alike and short and _each_its_own(both.body, one) else None


def _of_elements(node: Node) -> TypeGuard[Loop]:
    """Does the compiler vectorise it, with statements alone inside?"""
    if not isinstance(node, Loop) or node.annotation is None or not node.independent:
        return False
    return node.annotation.kind == "simd" and all(isinstance(inner, Statement) for inner in node.body)


def _each_its_own(body: Iterable[Node], loop: Loop, only: str | None = None) -> bool:
    """Has every iteration its own element of all that is stored, and of that no other? only: of one
    buffer."""
    found = [access for node in body for access in accesses(node) if only in (None, access.load.buffer)]
    stored = {access.load for access in found if access.is_write}
    names = {load.buffer for load in stored}
    return (
        all(apart(load, [loop]) for load in stored)
        and all(access.load in stored for access in found if access.load.buffer in names)
        and len(names) == len(stored)
    )
