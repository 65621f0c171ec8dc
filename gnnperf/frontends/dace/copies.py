"""Copies between access nodes as loops."""

from __future__ import annotations

from typing import Any

from dace.sdfg import nodes as dn

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.builder import Builder
from gnnperf.frontends.dace.normal_form import is_view_edge
from gnnperf.frontends.dace.scope import Scope
from gnnperf.frontends.dace.tasklets import combination
from gnnperf.frontends.dace.views import Indices, Subset, ViewLayout, everything, linear, split
from gnnperf.nests.affine import constant, simplify
from gnnperf.nests.ir import Const, Expr, Op


def copies_of(builder: Builder, scope: Scope, state: Any, node: Any) -> None:
    """The copies that DaCe makes when it comes to an access node: into it from outer scopes, then out
    of it to nodes of the same and of outer scopes."""
    for edge in state.in_edges(node):
        if isinstance(edge.src, dn.EntryNode) and not edge.data.is_empty():
            source = state.memlet_path(edge)[0].src
            if isinstance(source, dn.AccessNode) and not is_view_edge(scope.sdfg, state, edge):
                _copy(builder, scope, state, edge, source.data, node.data)
    for edge in state.out_edges(node):
        if isinstance(edge.dst, (dn.AccessNode, dn.ExitNode)) and not edge.data.is_empty():
            target = state.memlet_path(edge)[-1].dst
            if isinstance(target, dn.AccessNode) and not is_view_edge(scope.sdfg, state, edge):
                _copy(builder, scope, state, edge, node.data, target.data)


def _copy(builder: Builder, scope: Scope, state: Any, edge: Any, source: str, target: str) -> None:
    from_view, to_view = scope.view(source), scope.view(target)
    read, write = edge.data.get_src_subset(edge, state), edge.data.get_dst_subset(edge, state)
    read_subset = None if read is None else scope.subset(read)
    write_subset = None if write is None else scope.subset(write)
    if read_subset is None:
        assert write_subset is not None
        read_subset = _like(from_view.layout, write_subset)
    if write_subset is None:
        write_subset = _like(to_view.layout, read_subset)
    apart = source == target and _disjoint(read_subset, write_subset)
    if from_view.buffer == to_view.buffer and not apart:
        raise UnsupportedConstruct(f"a copy of {source} into itself")
    combine = combination(edge.data.wcr, builder.buffers[to_view.buffer].dtype)
    shape = tuple(write_subset.sizes[d] for d in write_subset.dimensions)
    read_shape = tuple(read_subset.sizes[d] for d in read_subset.dimensions)
    same = len(shape) == len(read_shape) and all(
        a == b or constant(a) is None or constant(b) is None for a, b in zip(shape, read_shape, strict=True)
    )

    if not same and _count(shape) != _count(read_shape):
        raise UnsupportedConstruct(f"a copy of {source} to {target} between different numbers of elements")

    def body(values: tuple[Expr, ...]) -> None:
        offsets = values
        if not same:
            packed: list[Expr] = [Const(1)]
            for size in reversed(shape[1:]):
                packed.insert(0, simplify(Op("mul", (packed[0], size))))
            offsets = split(linear(values, packed[: len(shape)]), read_shape, builder.ranges)
        to = to_view.element(write_subset.at(dict(zip(write_subset.dimensions, values, strict=True))))
        fetched = read_subset.at(dict(zip(read_subset.dimensions, offsets, strict=True)))
        builder.assign(to, combine.inverse(from_view.element(fetched)), combine.reduce)

    builder.loops([f"i{d}" for d in range(len(shape))], shape, body)


def _disjoint(one: Subset, two: Subset) -> bool:
    """Do two subsets of one array surely have no element in common?"""
    for a, b, m, n in zip(one.starts, two.starts, one.sizes, two.sizes, strict=True):
        distance, first, second = constant(Op("sub", (b, a))), constant(m), constant(n)
        if distance is None:
            continue
        if distance > 0 and first is not None and set(one.steps) == {1} and distance >= first:
            return True
        if distance < 0 and second is not None and set(two.steps) == {1} and -distance >= second:
            return True
    return False


def _count(shape: Indices) -> Expr:
    """Number of elements."""
    total: Expr = Const(1)
    for size in shape:
        total = simplify(Op("mul", (total, size)))
    return total


def _like(layout: ViewLayout, other: Subset) -> Subset:
    """The subset a copy means on the side that its memlet leaves out: as many elements, from 0 on."""
    rank = len(layout.shape)
    if rank == len(other.sizes):
        sizes = other.sizes
    else:
        wanted = [other.sizes[d] for d in other.dimensions]
        if len(wanted) > rank:
            return everything(layout)
        long = [d for d in range(rank) if constant(layout.shape[d]) != 1]
        if len(long) != len(wanted):
            long = list(range(rank - len(wanted), rank))
        found: list[Expr] = [Const(1)] * rank
        for d, size in zip(long, wanted, strict=True):
            found[d] = size
        sizes = tuple(found)
    return Subset(tuple(Const(0) for _ in range(rank)), sizes, (1,) * rank)
