"""What stands before a sequential loop becomes its first iteration, if it is what the loop would do in one.

x[0] = b[0] / L[0, 0]                               for i in 0..n:
for i in 1..n:                                          s = 0
    s = 0                                               for j in 0..i: s += L[i, j] * x[j]
    for j in 0..i: s += L[i, j] * x[j]                  x[i] = (b[i] - s) / L[i, i]
    x[i] = (b[i] - s) / L[i, i]

Solvers and factorisations are often written so; what they are is seen where all iterations are alike.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

from gnnperf.nests.affine import constant, simplify
from gnnperf.nests.analysis import extent, touched, varies
from gnnperf.nests.coverage import flow
from gnnperf.nests.forward import forward_substitute
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    equals_number,
    map_node,
    substitute_node,
    walk,
)
from gnnperf.nests.subscripts import canonical_subscripts


def with_peeled(body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """The nodes with peeled iterations in their loops. Subscripts and bounds are canonical."""
    if not any(isinstance(node, Loop) and _iteration_before(node, buffers) for node in body[1:]):
        return body
    found: list[Node] = []
    nodes = forward_substitute(body, buffers)
    for position, node in enumerate(nodes):
        used_later = {name for later in nodes[position + 1 :] for name in touched(later)}
        while isinstance(node, Loop) and (first := _iteration_before(node, buffers, used_later)):
            before = found[-len(first) :]
            if len(before) < len(first) or not all(map(_is_alike, before, first)):
                break
            del found[-len(first) :]
            node = _one_earlier(node)
        found.append(node)
    return tuple(found) if len(found) < len(nodes) else body


def _iteration_before(
    loop: Loop, buffers: Mapping[str, Buffer], used_later: Collection[str] = ()
) -> tuple[Node, ...]:
    """What a loop would do in one more iteration ahead of its first, but for what every iteration keeps in
    scratch of its own; () where that cannot be said."""
    start = constant(loop.start)
    if start is None or loop.independent or loop.condition is not None or not extent(loop):
        return ()
    stores = [n.target for n in walk(loop.body) if isinstance(n, Statement)]
    handed_on = {load.buffer for load in stores if varies(load, loop.iterator)} | flow(loop.body).exposed
    scratch = {k for k, b in buffers.items() if b.transient or b.scope == "local"}
    scratch -= handed_on.union(used_later)
    treated = {k: replace(b, scope="global", transient=k in scratch) for k, b in buffers.items()}
    before = {loop.iterator: Const(start - 1)}
    block = _without_empty(tuple(canonical_subscripts(substitute_node(n, before)) for n in loop.body))
    return _without_zeros(forward_substitute(block, treated))


def _without_empty(block: tuple[Node, ...]) -> tuple[Node, ...]:
    """Without loops in which nothing happens. (Around a sum with an initial value, that is stored.)"""
    found: list[Node] = []
    for node in block:
        if isinstance(node, Loop):
            starts = any(isinstance(n, Statement) and n.init is not None for n in walk(node.body))
            node = replace(node, body=_without_empty(node.body))
            if not node.body or (extent(node) == 0 and not starts):
                continue
        found.append(node)
    return tuple(found)


def _without_zeros(block: tuple[Node, ...]) -> tuple[Node, ...]:
    """Without sums to which nothing is added."""
    simpler = (map_node(node, _without_zero) for node in block)
    return tuple(
        replace(n, body=_without_zeros(n.body)) if isinstance(n, Loop) else n
        for n in simpler
        if isinstance(n, Loop) or n.reduce != "add" or not equals_number(n.value, 0)
    )


def _without_zero(expr: Expr) -> Expr:
    """x + 0, 0 + x and x - 0 are x, and -0 is 0."""
    match expr:
        case Op("add" | "sub", (kept, zero)) if equals_number(zero, 0):
            return kept
        case Op("add", (zero, kept)) if equals_number(zero, 0):
            return kept
        case Op("neg", (zero,)) if equals_number(zero, 0):
            return zero
    return expr


def _is_alike(one: Node, other: Node) -> bool:
    """Are the two the same but for names of iterators?"""
    if not isinstance(one, Loop) or not isinstance(other, Loop):
        return one == other
    other = cast(Loop, substitute_node(other, {other.iterator: Symbol(one.iterator)}))
    heads = (replace(loop, iterator="", body=()) for loop in (one, other))
    return (
        operator.eq(*heads) and len(one.body) == len(other.body) and all(map(_is_alike, one.body, other.body))
    )


def _one_earlier(loop: Loop) -> Loop:
    """The loop with one more iteration ahead of its first, from 0 where it would begin below."""
    loop = replace(loop, start=simplify(Op("sub", (loop.start, Const(1)))))
    if constant(loop.start) != -1:
        return loop
    earlier = {loop.iterator: Op("sub", (Symbol(loop.iterator), Const(1)))}
    body = tuple(substitute_node(node, earlier) for node in loop.body)
    stop = Op("add", (loop.stop, Const(1)))
    return cast(Loop, canonical_subscripts(replace(loop, start=Const(0), stop=stop, body=body)))
