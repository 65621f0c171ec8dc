"""Ways to run several pointwise nests of a unit as one, without scratch arrays between them.

"merge": nests over the same box whose data flows point to point share one loop body; what flows
between them becomes a scalar. "inline": a consumer computes what it needs of its producers itself, as
often as it needs it; this removes the scratch arrays of stencil chains at the price of recomputation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gnnperf.nests import LoopNest
from gnnperf.nests.affine import affine
from gnnperf.nests.analysis import Band, accesses, band, is_reduction, read, rebuild, written
from gnnperf.nests.forward import forward_substitute
from gnnperf.nests.ir import (
    Buffer,
    Expr,
    Load,
    Loop,
    Node,
    Statement,
    Symbol,
    map_node,
    substitute_node,
)


def combine(how: str, nest: LoopNest) -> LoopNest:
    """The nest with its top-level nests combined; `how` is "", "merge" or "inline"."""
    if not how or len(nest.body) < 2:
        return nest
    body = forward_substitute(nest.body, nest.buffers, recompute=True) if how == "inline" else nest.body
    return _merged(replace(nest, body=body))


def _merged(nest: LoopNest) -> LoopNest:
    groups: list[Node] = []
    for node in nest.body:
        place = _place(groups, node, nest.buffers)
        if place is None:
            groups.append(node)
        else:
            groups[place] = _joined(groups[place], node)
    buffers = dict(nest.buffers)
    return replace(nest, body=tuple(_scalars(n, groups, buffers) for n in groups), buffers=buffers)


def _place(groups: list[Node], node: Node, buffers: Mapping[str, Buffer]) -> int | None:
    """The latest group that the node may join, without passing one that it depends on."""
    for position in range(len(groups) - 1, -1, -1):
        if _aligned(groups[position], node, buffers):
            return position
        if _depends(groups[position], node):
            return None
    return None


def _depends(first: Node, second: Node) -> bool:
    return not (
        written(first).isdisjoint(read(second) | written(second)) and read(first).isdisjoint(written(second))
    )


def _aligned(first: Node, second: Node, buffers: Mapping[str, Buffer]) -> bool:
    """Same box, no reductions, and every buffer that one writes and the other touches is addressed by
    both at one and the same element, which no other iteration addresses."""
    a, b = band(first), band(second)
    if not a.loops or not (_is_pointwise(a, buffers) and _is_pointwise(b, buffers)):
        return False
    if [(lp.start, lp.stop) for lp in a.loops] != [(lp.start, lp.stop) for lp in b.loops]:
        return False
    moved = _renamed(b, a.iterators)
    shared = (written(first) & _touched(second)) | (written(second) & _touched(first))
    if any(buffers[name].scope == "local" for name in shared):
        return False
    for name in shared:
        cells = {x.load.indices for n in (*a.body, *moved) for x in accesses(n) if x.load.buffer == name}
        if len(cells) != 1 or not _is_injective(cells.pop(), a.iterators):
            return False
    return True


def _is_pointwise(nest: Band, buffers: Mapping[str, Buffer]) -> bool:
    local = {k for k, b in buffers.items() if b.scope == "local"}
    return (
        nest.is_perfect
        and all(lp.independent for lp in nest.loops)
        and not any(is_reduction(lp, nest.statements, local) for lp in nest.loops)
        and all(s.reduce is None or s.init is None for s in nest.statements)
    )


def _touched(node: Node) -> set[str]:
    return {a.load.buffer for a in accesses(node)}


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


def _scalars(node: Node, groups: list[Node], buffers: dict[str, Buffer]) -> Node:
    """Scratch arrays that only one iteration of this node sees become local scalars."""
    if not isinstance(node, Loop) or len(band(node).body) < 2:
        return node
    elsewhere = {name for other in groups if other is not node for name in _touched(other)}
    for name in sorted(_touched(node) - elsewhere):
        buffer = buffers[name]
        cells = {a.load.indices for a in accesses(node) if a.load.buffer == name}
        if not buffer.transient or buffer.scope == "local" or len(cells) != 1:
            continue
        if not _written_first(node, name) or not _is_injective(next(iter(cells)), band(node).iterators):
            continue
        scalar = f"{name}_here"
        buffers[scalar] = Buffer(scalar, buffer.dtype, (), (), transient=True, scope="local")
        node = map_node(node, lambda e, n=name, s=scalar: _as_scalar(e, n, s))  # type: ignore[misc]
    return node


def _as_scalar(expr: Expr, name: str, scalar: str) -> Expr:
    return Load(scalar) if isinstance(expr, Load) and expr.buffer == name else expr


def _written_first(node: Node, name: str) -> bool:
    """Is the value that the iteration reads one that it wrote itself?"""
    for statement in band(node).body:
        assert isinstance(statement, Statement)
        if statement.target.buffer == name:
            return statement.reduce is None and statement.guard is None
        if any(a.load.buffer == name for a in accesses(statement)):
            return False
    return False
