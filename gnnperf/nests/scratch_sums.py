"""Sums of products that a loop keeps in a scratch array, given a place for every iteration.

Where they are stored, if they are:

    for i:                                      for i:
        for j: t[j] = 0                             for j: C[i, j] = 0
        for k, j: t[j] += A[i, k] * B[k, j]         for k, j: C[i, j] += A[i, k] * B[k, j]
        for j: C[i, j] = f(t[j])                    for j: C[i, j] = f(C[i, j])

Else, where they are long, in a row of a larger scratch array, `t[i, j]`, as are rows that such sums multiply.

A product of matrices that is written row by row (`C[i, :] = A[i, :] @ B`) has all its loops to itself then,
where the scratch array held them in the loop over rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from gnnperf.graph.vocabulary import element_bytes
from gnnperf.nests.affine import constant
from gnnperf.nests.analysis import Band, apart, band, extent, retarget, touched, varies
from gnnperf.nests.fission import fission
from gnnperf.nests.ir import (
    Buffer,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    expressions_of,
    loads,
    map_node,
    reads,
    row_major,
    subexpressions,
    substitute,
    walk,
)  # fmt: skip

STORED_TERMS, KEPT_TERMS = 8, 32
"""A sum of fewer terms costs less than another sweep over the array that it is stored in, or than to write it
to memory and read it again."""
CACHED_BYTES = 1 << 16
"""What all iterations multiply by is at hand for each of them anyway where it is in the innermost cache."""
KEPT_BYTES, PRIVATE_BYTES = 1 << 26, 1 << 18
"""Of a scratch array with a row for every iteration, at most: in memory, and on the stack of every thread."""


def settled_sums(
    body: tuple[Node, ...], buffers: Mapping[str, Buffer]
) -> tuple[tuple[Node, ...], dict[str, Buffer]]:
    """The nodes of a nest with such sums in places of their own, and the buffers that they then use."""
    found = dict(buffers)
    return _each(body, {name for name in buffers if not buffers[name].transient}, False, found), found


def _each(
    body: Sequence[Node], shared: set[str], private: bool, buffers: dict[str, Buffer]
) -> tuple[Node, ...]:
    """shared: arrays that something outside the nodes touches, too. private: is around them a loop whose
    iterations may run at once, each with scratch arrays of its own?"""
    touches = [touched(node) for node in body]
    return tuple(
        _inside(node, shared.union(*touches[:at], *touches[at + 1 :]), private, buffers)
        for at, node in enumerate(body)
    )


def _inside(node: Node, shared: set[str], private: bool, buffers: dict[str, Buffer]) -> Node:
    if not isinstance(node, Loop):
        return node
    own = {load.buffer for expr in expressions_of(node) for load in loads(expr)}
    node = replace(node, body=_each(node.body, shared | own, private or node.independent, buffers))
    names = sorted(touched(node) - shared - own)
    while names:  # what is stored in another scratch array may make that one hold a sum
        name = names.pop()
        in_memory = {**buffers, name: replace(buffers[name], scope="global")}
        body = tuple(part for child in node.body for part in fission(child, in_memory))
        users = [at for at, child in enumerate(body) if name in touched(child)]
        if users and (settled := _stored(body, users, name, buffers)):
            names = sorted({*names, _home(body[users[-1]])} - shared - own - {name})
            node = replace(node, body=settled)
        else:
            node = _kept(node, body, name, private, buffers) or node
    return node


def _stored(
    body: Sequence[Node], users: Sequence[int], name: str, buffers: Mapping[str, Buffer]
) -> tuple[Node, ...]:
    """The nodes without the array that only `users` touch; () where it holds no such sum that is stored."""
    bands = [band(body[at]) for at in users]
    if any(len(b.body) != 1 or not b.is_perfect or any(lp.step != 1 for lp in b.loops) for b in bands):
        return ()
    *made, store = [b.statements[0] for b in bands]
    home, last = store.target, next((ld for ld in loads(store.value) if ld.buffer == name), None)
    if last is None or home.buffer in _read(store) or buffers[home.buffer].dtype != buffers[name].dtype:
        return ()
    if loads(home) != (home,):
        return ()  # its place is looked up: what is at hand would be searched for with every term
    if any(home.buffer in touched(body[at]) for at in range(users[0], users[-1])):
        return ()
    places = [_axes(b, load) for b, load in zip(bands, (*(s.target for s in made), last), strict=True)]
    own = places[-1]
    ranges = {tuple((lp.start, lp.stop) for lp in axes) for axes in places}
    if len(ranges) != 1 or not apart(home, own) or any(s.target.buffer != name for s in made):
        return ()
    if any(
        len(axes) != len(load.indices)
        for axes, load in zip(places, (*(s.target for s in made), last), strict=True)
    ):
        return ()
    sums = [_adds_products(b, axes, STORED_TERMS) for b, axes in zip(bands, places, strict=True)]
    for statement, nest, axes, is_sum in zip((*made, store), bands, places, sums, strict=True):
        is_plain = statement.guard is None and statement.init is None and len(axes) == len(nest.loops)
        place = Load(name, tuple(Symbol(lp.iterator) for lp in axes))
        if not (is_sum or is_plain) or any(ld != place for ld in reads(statement) if ld.buffer == name):
            return ()
    if not any(sums) or made[0].reduce is not None or name in _read(made[0]) or store.reduce is not None:
        return ()
    nodes = list(body)
    for at, axes in zip(users, places, strict=True):
        counted = {lp.iterator: Symbol(other.iterator) for lp, other in zip(own, axes, strict=True)}
        nodes[at] = retarget(nodes[at], name, substitute(home, counted))
    if store.value == last:
        del nodes[users[-1]]
    return tuple(nodes)


def _kept(
    loop: Loop, body: tuple[Node, ...], name: str, private: bool, buffers: dict[str, Buffer]
) -> Loop | None:
    """The loop, over these nodes, with a row of the array for every iteration; None where no long sums of
    products make or use it."""
    rows, start, buffer = extent(loop), constant(loop.start), buffers[name]
    shape = [size for size in buffer.shape if isinstance(size, int)]
    if not loop.independent or rows is None or start is None or not 0 < len(shape) == len(buffer.shape):
        return None
    if rows * _bytes(buffer) > (PRIVATE_BYTES if private else KEPT_BYTES):
        return None
    statements = [n for n in walk(body) if isinstance(n, Statement)]
    uses = [ld for s in statements for ld in (s.target, *reads(s)) if ld.buffer == name]
    if any(varies(load, loop.iterator) for load in uses):
        return None  # every iteration has its own
    if not any(_multiplies(b, name, loop, buffers) for b in map(band, body)):
        return None
    scope: Literal["local", "global"] = "local" if private else "global"
    whole = (rows, *shape)
    buffers[name] = replace(
        buffer, shape=whole, strides=row_major(whole), scope=scope, transient=True, offset=0
    )
    row = Op("sub", (Symbol(loop.iterator), loop.start)) if start else Symbol(loop.iterator)

    def in_row(expr: Expr) -> Expr:
        return Load(name, (row, *expr.indices)) if isinstance(expr, Load) and expr.buffer == name else expr

    return replace(loop, body=tuple(map_node(node, in_row) for node in body))


def _multiplies(nest: Band, name: str, loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    """Does the nest make the array, or use it, in long sums of products with what all iterations of the loop
    share and no innermost cache holds?"""
    if not nest.loops or len(nest.body) != 1 or not nest.is_perfect:
        return False
    (statement,) = nest.statements
    axes = [lp for lp in nest.loops if varies(statement.target, lp.iterator)]
    if name not in touched(statement) or not axes or not _adds_products(nest, axes, KEPT_TERMS):
        return False
    shared = {ld.buffer for ld in loads(statement.value) if not varies(ld, loop.iterator)} - {name}
    return any(_bytes(buffers[operand]) > CACHED_BYTES for operand in shared)


def _bytes(buffer: Buffer) -> int:
    """What is known of its size."""
    return math.prod(size for size in buffer.shape if isinstance(size, int)) * element_bytes(buffer.dtype)


def _home(store: Node) -> str:
    (statement,) = band(store).statements
    return statement.target.buffer


def _read(statement: Statement) -> set[str]:
    return {load.buffer for load in reads(statement)}


def _axes(nest: Band, load: Load) -> tuple[Loop, ...]:
    """The loop that counts each dimension of the load, from its first element on; () where one has none."""
    by_index: dict[Expr, Loop] = {Symbol(lp.iterator): lp for lp in nest.loops}
    found = tuple(by_index[index] for index in load.indices if index in by_index)
    return found if len(found) == len(load.indices) == len(set(load.indices)) else ()


def _adds_products(nest: Band, axes: Sequence[Loop], least: int) -> bool:
    """Does the only statement add up products, at least so many, of two elements that move with the terms?"""
    (statement,) = nest.statements
    terms = [lp for lp in nest.loops if lp not in axes]
    if statement.reduce != "add" or statement.guard is not None or statement.init is not None:
        return False
    if not terms or math.prod(extent(lp) or least for lp in terms) < least:
        return False

    def moves(value: Expr) -> bool:
        return any(varies(load, lp.iterator) for load in loads(value) for lp in terms)

    return any(
        isinstance(e, Op) and e.name == "mul" and all(map(moves, e.args))
        for e in subexpressions(statement.value)
    )
