"""Sums of products that a loop keeps in a scratch array, kept where they are stored.

for i:                                      for i:
    for j: t[j] = 0                             for j: C[i, j] = 0
    for k, j: t[j] += A[i, k] * B[k, j]         for k, j: C[i, j] += A[i, k] * B[k, j]
    for j: C[i, j] = f(t[j])                    for j: C[i, j] = f(C[i, j])

A product of matrices that is written row by row (`C[i, :] = A[i, :] @ B`) has all its loops to itself then,
where the scratch array held them in the loop over rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gnnperf.nests.affine import affine
from gnnperf.nests.analysis import Band, accesses, band, extent, mentions, touched, varies
from gnnperf.nests.ir import (
    Buffer,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    loads,
    map_node,
    reads,
    subexpressions,
    substitute,
)  # fmt: skip

LEAST_TERMS = 8
"""A shorter sum costs less than another sweep over the array that it is stored in."""


def settled_sums(body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """The nodes of a nest with such sums kept where they are stored."""
    counts = Counter(a.load.buffer for node in body for a in accesses(node))
    scratch = {name: count for name, count in counts.items() if buffers[name].transient}
    return tuple(_inside(node, scratch, buffers) for node in body)


def _inside(node: Node, scratch: Mapping[str, int], buffers: Mapping[str, Buffer]) -> Node:
    """scratch: transient arrays, and how often the nest accesses each."""
    if not isinstance(node, Loop):
        return node
    nodes = [_inside(child, scratch, buffers) for child in node.body]
    for name in sorted(touched(node) & scratch.keys()):
        users = [at for at, child in enumerate(nodes) if name in touched(child)]
        here = sum(a.load.buffer == name for at in users for a in accesses(nodes[at]))
        if here == scratch[name] and len(users) > 2:
            nodes = _settled(nodes, users, name, buffers)
    return replace(node, body=tuple(nodes))


def _settled(nodes: list[Node], users: Sequence[int], name: str, buffers: Mapping[str, Buffer]) -> list[Node]:
    """The nodes without the array that only `users` touch; as they were, where it holds no such sum."""
    bands = [band(nodes[at]) for at in users]
    if any(len(b.body) != 1 or not b.is_perfect or any(lp.step != 1 for lp in b.loops) for b in bands):
        return nodes
    start, *adds, store = (b.statements[0] for b in bands)
    home, kept = store.target, {load for load in loads(store.value) if load.buffer == name}
    if any(s.reduce is not None or s.guard is not None or s.init is not None for s in (start, store)):
        return nodes
    if any(s.target.buffer != name or name in _read(s) for s in (start, *adds)) or len(kept) != 1:
        return nodes
    if home.buffer in _read(store) or buffers[home.buffer].dtype != buffers[name].dtype:
        return nodes
    if any(home.buffer in touched(nodes[at]) for at in range(users[0], users[-1])):
        return nodes
    (last,) = kept
    places = [
        _axes(b, load) for b, load in zip(bands, (*(s.target for s in (start, *adds)), last), strict=True)
    ]
    own = places[-1]
    ranges = {tuple((lp.start, lp.stop) for lp in axes) for axes in places}
    if not own or len(ranges) != 1 or not _apart(home, own):
        return nodes
    if any(len(axes) != len(b.loops) for axes, b in ((places[0], bands[0]), (own, bands[-1]))):
        return nodes
    if not all(_adds_products(*found) for found in zip(bands[1:-1], places[1:-1], strict=True)):
        return nodes
    for at, axes in zip(users, places, strict=True):
        counted = {lp.iterator: Symbol(other.iterator) for lp, other in zip(own, axes, strict=True)}
        nodes[at] = _stored(nodes[at], name, substitute(home, counted))
    if store.value == last:
        del nodes[users[-1]]
    return nodes


def _read(statement: Statement) -> set[str]:
    return {load.buffer for load in reads(statement)}


def _axes(nest: Band, load: Load) -> tuple[Loop, ...]:
    """The loop that counts each dimension of the load, from its first element on; () where one has none."""
    by_index: dict[Expr, Loop] = {Symbol(lp.iterator): lp for lp in nest.loops}
    found = tuple(by_index[index] for index in load.indices if index in by_index)
    return found if len(found) == len(load.indices) == len(set(load.indices)) else ()


def _apart(home: Load, axes: Sequence[Loop]) -> bool:
    """Does every iteration of these loops have an element of its own: an index for each of them?"""
    names = [lp.iterator for lp in axes]
    moving = [(index, [name for name in names if mentions(index, name)]) for index in home.indices]
    if sorted(name for _, found in moving for name in found) != sorted(names):
        return False
    return all(
        len(found) == 1 and affine(index).coefficient(found[0]) != 0 for index, found in moving if found
    )


def _adds_products(nest: Band, axes: Sequence[Loop]) -> bool:
    """Does the only statement add up products, long enough, of two elements that move with the terms?"""
    (statement,) = nest.statements
    terms = [lp for lp in nest.loops if lp not in axes]
    if statement.reduce != "add" or statement.guard is not None or statement.init is not None or not terms:
        return False
    if math.prod(extent(lp) or LEAST_TERMS for lp in terms) < LEAST_TERMS:
        return False

    def moves(value: Expr) -> bool:
        return any(varies(load, lp.iterator) for load in loads(value) for lp in terms)

    return any(
        isinstance(e, Op) and e.name == "mul" and all(map(moves, e.args))
        for e in subexpressions(statement.value)
    )


def _stored(node: Node, name: str, home: Expr) -> Node:
    """The node with `home` instead of its only element of the array."""
    return map_node(node, lambda e: home if isinstance(e, Load) and e.buffer == name else e)
