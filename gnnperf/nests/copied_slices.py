"""What a nest reads of an array that the next one overwrites, copied first, so that the two may run as one.

for i, j: T[i, j] = D[i, k] + D[k, j]            for i: C[i] = D[i, k]
for i, j: D[i, j] = min(D[i, j], T[i, j])        for j: R[j] = D[k, j]
                                                 for i, j: T[i, j] = C[i] + R[j]
                                                 for i, j: D[i, j] = min(D[i, j], T[i, j])

Copied are slices, which have fewer dimensions than the nests have loops: rows, columns, single elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import (
    Band,
    accesses,
    band,
    bound_dependences,
    extent,
    mentions,
    rebuild,
    rename_iterators,
    written,
)
from gnnperf.nests.ir import (
    LAZY,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    loads,
    map_node,
    row_major,
    subexpressions,
)
from gnnperf.nests.names import Names


class Copied(NamedTuple):
    """copies: nests to run before `node`, which reads what they wrote into `buffers`."""

    copies: list[Node]
    node: Node
    buffers: dict[str, Buffer]


def copied_slices(first: Node, second: Node, buffers: Mapping[str, Buffer], names: Names) -> Copied | None:
    """The first of two nests that follow each other with the slices copied that the second overwrites; None
    where there are none, or one that may lie outside of its array unless something holds."""
    nest, overwritten = band(first), written(second) - written(first)
    statements = [s for s in nest.body if isinstance(s, Statement)]
    if len(statements) != len(nest.body) or any(s.guard is not None for s in statements):
        return None
    found = Copied([], first, {})
    new: dict[Expr, Expr] = {}
    for load in dict.fromkeys(a.load for a in accesses(first) if a.load.buffer in overwritten):
        used = [loop for loop in nest.loops if mentions(load, loop.iterator)]
        if len(used) == len(nest.loops):
            continue
        sizes = _sizes(load, used, nest) if buffers[load.buffer].scope == "global" else None
        if sizes is None or any(_is_chosen(load, s.value) for s in statements):
            return None
        name = names.fresh(f"{load.buffer}_slice")
        found.buffers[name] = Buffer(
            name, buffers[load.buffer].dtype, sizes, row_major(sizes), transient=True
        )
        copy, new[load] = _copy(load, used, name, names)
        found.copies.append(copy)
    if not new:
        return None
    return found._replace(node=map_node(first, lambda expr: new.get(expr, expr)))


def leading_copies(nodes: Sequence[Node], buffers: Mapping[str, Buffer]) -> int:
    """How many nests, of the first ones, copy slices to scratch arrays for one with more loops."""
    deepest = max((len(band(node).loops) for node in nodes), default=0)

    def copies(node: Node) -> bool:
        nest = band(node)
        if len(nest.body) != 1 or len(nest.loops) == deepest:
            return False
        (copy,) = nest.body
        return (
            isinstance(copy, Statement)
            and isinstance(copy.value, Load)
            and buffers[copy.target.buffer].transient
        )

    return next((n for n, node in enumerate(nodes) if not copies(node)), len(nodes))


def _sizes(load: Load, used: list[Loop], nest: Band) -> tuple[int, ...] | None:
    """Of a slice; None where it is not known, or where one cannot tell that the nest reads all of it."""
    if any(loads(index) for index in load.indices):
        return None
    sizes = {loop.iterator: extent(loop) for loop in nest.loops}
    plain = all(loop.step == 1 and not bound_dependences(loop) & {*sizes} for loop in nest.loops)
    if not plain or any(not size for size in sizes.values()):
        return None
    return tuple(sizes[loop.iterator] or 0 for loop in used) or (1,)


def _is_chosen(load: Load, value: Expr) -> bool:
    """Is it read under a condition?"""
    chosen = [e for e in subexpressions(value) if isinstance(e, Op) and e.name in LAZY]
    return any(load in loads(e) for e in chosen)


def _copy(load: Load, used: list[Loop], name: str, names: Names) -> tuple[Node, Load]:
    """(the nest that copies a slice, what is read in its place)."""
    places = [simplify(Op("sub", (Symbol(loop.iterator), loop.start))) for loop in used] or [Const(0)]
    place = Load(name, tuple(places))
    loops = used or [Loop("once", Const(0), Const(1), ())]
    (node,) = rebuild(loops, (Statement(place, load),))
    return rename_iterators(node, {loop.iterator: names.fresh(loop.iterator) for loop in loops}), place
