"""Ways to run several pointwise nests of a unit as one, without scratch arrays between them.

"merge": nests over the same box whose data flows point to point share one loop body; what flows
between them becomes a scalar, and what one reads elsewhere of an array that the next one overwrites is copied
before (see `copied_slices.py`). "inline": a consumer computes what it needs of its producers itself, as
often as it needs it; this removes the scratch arrays of stencil chains at the price of recomputation, and
those of loops over time that update arrays in place (see `second_copies.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from gnnperf.nests.affine import affine
from gnnperf.nests.analysis import Band, accesses, band, depends, is_reduction, rebuild, touched, written
from gnnperf.nests.contraction import contract
from gnnperf.nests.copied_slices import copied_slices
from gnnperf.nests.forward import forward_substitute
from gnnperf.nests.ir import (
    Buffer,
    Expr,
    Loop,
    LoopNest,
    Node,
    Statement,
    Symbol,
    substitute_node,
    walk,
)
from gnnperf.nests.names import Names
from gnnperf.nests.ranges import value_range
from gnnperf.nests.second_copies import half_steps
from gnnperf.nests.updates import joined_updates


def combine(how: str, nest: LoopNest) -> LoopNest:
    """The nest with its top-level nests combined, and those inside sequential loops; `how` is "", "merge"
    or "inline"."""
    if not how:
        return nest
    nest = _with_joined_updates(nest)
    combined = _combined(how, nest)
    return (how == "inline" and _copying(nest, combined)) or combined


def from_copy_to_copy(nest: LoopNest) -> LoopNest | None:
    """The nest combined, its loops over time writing a second copy of their arrays in every other step; None
    where that saves no sweep over them."""
    nest = _with_joined_updates(nest)
    return _copying(nest, _combined("inline", nest))


def _with_joined_updates(nest: LoopNest) -> LoopNest:
    return replace(nest, body=joined_updates(nest.body, nest.buffers))


def _copying(nest: LoopNest, combined: LoopNest) -> LoopNest | None:
    if (halves := half_steps(nest)) is None:
        return None
    ahead = _combined("inline", halves.nest)
    return halves.completed(ahead) if halves.sweeps(ahead) < halves.sweeps(combined) else None


def _combined(how: str, nest: LoopNest) -> LoopNest:
    body = _recomputed(nest) if how == "inline" else nest.body
    buffers = dict(nest.buffers)
    body, buffers = contract(_merged(body, buffers, Names.of(nest)), buffers)
    return replace(nest, body=body, buffers=buffers)


def _recomputed(nest: LoopNest) -> tuple[Node, ...]:
    """What consumers need of their producers computed in them; choices between several producers, too, where
    no scratch is left then whose rows nests might share."""
    body = forward_substitute(nest.body, nest.buffers, recompute=True)
    if max(_stores_of_scratch(body, nest.buffers).values(), default=0) < 2:
        return body
    choosing = forward_substitute(nest.body, nest.buffers, recompute=True, choices=True)
    return body if _stores_of_scratch(choosing, nest.buffers) else choosing


def _stores_of_scratch(body: tuple[Node, ...], buffers: Mapping[str, Buffer]) -> Counter[str]:
    """How many statements write each scratch array."""
    targets = [s.target.buffer for s in walk(body) if isinstance(s, Statement)]
    return Counter(name for name in targets if buffers[name].transient and buffers[name].shape)


def _merged(body: tuple[Node, ...], buffers: dict[str, Buffer], names: Names) -> tuple[Node, ...]:
    """The nodes, joined; `buffers` gets the copies of slices."""
    groups: list[Node] = []
    for node in body:
        if isinstance(node, Loop) and not node.independent:
            node = replace(node, body=_merged(node.body, buffers, names))
        place = _place(groups, node, buffers)
        if place is not None:
            groups[place] = _joined(groups[place], node)
            continue
        freed = copied_slices(groups[-1], node, buffers, names) if groups else None
        if freed is not None and _aligned(freed.node, node, {**buffers, **freed.buffers}):
            buffers |= freed.buffers
            groups[-1:] = [*freed.copies, _joined(freed.node, node)]
        else:
            groups.append(node)
    return tuple(groups)


def _place(groups: list[Node], node: Node, buffers: Mapping[str, Buffer]) -> int | None:
    """The latest group that the node may join, without passing one that it depends on."""
    for position in range(len(groups) - 1, -1, -1):
        if _aligned(groups[position], node, buffers):
            return position
        if depends([groups[position]], [node]):
            return None
    return None


def _aligned(first: Node, second: Node, buffers: Mapping[str, Buffer]) -> bool:
    """Same box, no reductions, and every buffer that one writes and the other touches is addressed by both at
    one and the same element, which no other iteration addresses, or in places that are apart."""
    a, b = band(first), band(second)
    if not a.loops or not (_is_pointwise(a, buffers) and _is_pointwise(b, buffers)):
        return False
    if [(lp.start, lp.stop) for lp in a.loops] != [(lp.start, lp.stop) for lp in b.loops]:
        return False
    moved = _renamed(b, a.iterators)
    shared = (written(first) & touched(second)) | (written(second) & touched(first))
    if any(buffers[name].scope == "local" for name in shared):
        return False
    for name in shared:
        cells = {x.load.indices for n in (*a.body, *moved) for x in accesses(n) if x.load.buffer == name}
        if not all(_is_injective(cell, a.iterators) for cell in cells):
            return False
        if len(cells) > 1 and len(a.loops) < len(buffers[name].shape):
            return False  # borders, which tiles of time tell apart
        if not all(_never_meet(one, other, a) for one, other in combinations(cells, 2)):
            return False
    return True


def _never_meet(one: tuple[Expr, ...], other: tuple[Expr, ...], nest: Band) -> bool:
    """Are two elements of an array apart, whatever iterations of the nest they are of?"""
    loops = {lp.iterator: [lp] for lp in nest.loops}
    for indices in zip(one, other, strict=True):
        (a, b), (c, d) = (value_range(index, loops) for index in indices)
        if b < c or d < a:
            return True
    return False


def _is_pointwise(nest: Band, buffers: Mapping[str, Buffer]) -> bool:
    local = {k for k, b in buffers.items() if b.scope == "local"}
    return (
        nest.is_perfect
        and all(lp.independent for lp in nest.loops)
        and not any(is_reduction(lp, nest.statements, local) for lp in nest.loops)
        and all(s.reduce is None or s.init is None for s in nest.statements)
    )


def _is_injective(indices: tuple[Expr, ...], iterators: list[str]) -> bool:
    plain = {
        atom.name for i in indices for atom in affine(i).terms if isinstance(atom, Symbol)
        if len(affine(i).terms) == 1
    }  # fmt: skip
    return plain >= set(iterators)


def _renamed(nest: Band, iterators: list[str]) -> tuple[Node, ...]:
    names: dict[str, Expr] = {old: Symbol(new) for old, new in zip(nest.iterators, iterators, strict=True)}
    return tuple(substitute_node(n, names) for n in nest.body)


def _joined(first: Node, second: Node) -> Node:
    a, b = band(first), band(second)
    return rebuild(a.loops, (*a.body, *_renamed(b, a.iterators)))[0]
