"""Which loops threads may share, and which reductions they do in private copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import TypeAlias

from gnnperf.graph.vocabulary import ELEMENT_BYTES, OPERATIONS
from gnnperf.nests.affine import constant
from gnnperf.nests.analysis import access_counts, accesses, bound_dependences, extent
from gnnperf.nests.ir import (
    Buffer,
    Loop,
    LoopNest,
    Node,
    Op,
    Reduction,
    Statement,
    expressions_of,
    loads,
    subexpressions,
    walk,
)
from gnnperf.nests.ranges import separates

MAX_PRIVATE_BYTES = 1 << 28
"""A thread's private copy of a reduction target."""
BRIEF = 1 << 14
"""Operations and accesses that one thread is done with by the time that another has taken up work and been
waited for: about half a microsecond each time."""
SLOW, SLOW_AS = frozenset({"divide", "root", "exponential", "trigonometric"}), 16
"""Operations that take as long as so many others."""


PrivateReductions: TypeAlias = Mapping[str, tuple[Reduction, int]]
"""Buffer -> (reduction, elements of a private copy)."""


def private_reductions(
    loop: Loop, buffers: Mapping[str, Buffer], around: Mapping[str, int]
) -> PrivateReductions | None:
    """Targets that several iterations hit.

    None where threads cannot share the loop: such a target is also read or stored plainly, is reduced
    in two ways, is a local of an enclosing block, or is too large to copy. `around`: how often the whole
    nest accesses each buffer; scratch that only the loop accesses belongs to one iteration.
    """
    inside = access_counts((loop,))
    found: dict[str, tuple[Reduction, int]] = {}
    for name, statements in _writers(loop).items():
        buffer = buffers[name]
        scratch = buffer.transient or buffer.scope == "local"
        if (scratch and inside[name] == around[name]) or all(separates(s.target, loop) for s in statements):
            continue
        kinds = {s.reduce for s in statements}
        if kinds == {None} and buffer.scope == "global":  # independent by the frontend's promise
            continue
        count = span_elements(buffer)
        kind = kinds.pop()
        if (
            kinds
            or kind is None
            or buffer.scope == "local"
            or count is None
            or count * ELEMENT_BYTES[buffer.dtype] > MAX_PRIVATE_BYTES
            or any(a.load.buffer == name and not a.is_write for a in accesses(loop))
        ):
            return None
        found[name] = (kind, count)
    return found


def legal_threads(nest: LoopNest) -> LoopNest:
    """Parallel annotations that would race are dropped, and those of brief loops that other loops repeat,
    such as borders in steps of time; `collapse` is limited to the perfectly nested rectangular loops, without
    reductions across them, that are really there."""
    around = access_counts(nest.body)

    def visit(node: Node, repeated: bool = False) -> Node:
        if not isinstance(node, Loop) or (node.annotation is not None and node.annotation.library):
            return node
        if node.annotation is not None and node.annotation.kind == "parallel":
            private = private_reductions(node, nest.buffers, around)
            if private is None or (repeated and _work(node) <= BRIEF):
                return replace(node, annotation=None)
            depth = 1 if private else _collapsible(node, nest.buffers)
            return replace(node, annotation=replace(node.annotation, collapse=depth))
        return replace(node, body=tuple(visit(n, repeated or not node.independent) for n in node.body))

    return replace(nest, body=tuple(map(visit, nest.body)))


def _work(node: Node) -> float:
    """Operations and accesses of a node; infinite where that is not constant."""
    if isinstance(node, Loop):
        trips = extent(node)
        return inf if trips is None else trips * sum(map(_work, node.body))
    operations = [e for root in expressions_of(node) for e in subexpressions(root) if isinstance(e, Op)]
    slow = sum(OPERATIONS.get(op.name) in SLOW for op in operations)
    return len(operations) + (SLOW_AS - 1) * slow + sum(1 for _ in accesses(node))


def span_elements(buffer: Buffer) -> int | None:
    """Elements from the start of memory to the last one that the buffer holds, where constant."""
    total = buffer.offset + 1
    for size, step in zip(buffer.shape, buffer.strides, strict=True):
        extent = size if isinstance(size, int) else constant(size)
        stride = step if isinstance(step, int) else constant(step)
        if extent is None or stride is None:
            return None
        total += max(0, extent - 1) * max(0, stride)
    return total


def span_bytes(buffer: Buffer) -> int:
    """The same in bytes; 0 where it is not constant."""
    return (span_elements(buffer) or 0) * ELEMENT_BYTES[buffer.dtype]


def _collapsible(loop: Loop, buffers: Mapping[str, Buffer]) -> int:
    assert loop.annotation is not None
    depth, inner, outer = 1, loop, {loop.iterator}
    while depth < loop.annotation.collapse and len(inner.body) == 1 and isinstance(inner.body[0], Loop):
        child = inner.body[0]
        if child.annotation is not None or outer & bound_dependences(child) or not _disjoint(child, buffers):
            break
        if loads(child.start) or loads(child.stop):
            break
        outer.add(child.iterator)
        inner, depth = child, depth + 1
    return depth


def _disjoint(loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    """Different iterations store to different elements: no reduction runs across the loop."""
    return loop.independent and all(
        buffers[s.target.buffer].scope == "local" or separates(s.target, loop)
        for statements in _writers(loop).values()
        for s in statements
    )


def _writers(loop: Loop) -> dict[str, list[Statement]]:
    found: dict[str, list[Statement]] = {}
    for node in walk(loop.body):
        if isinstance(node, Statement):
            found.setdefault(node.target.buffer, []).append(node)
    return found
