"""Statements of scheduled graphs with the loops around them and what they access, as arrays.

Everything is read from encoded graphs, all graphs of a batch at once: looking at nodes one by one would cost
more than the network does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from gnnperf.graph.costs.arrays import GraphArrays
from gnnperf.graph.costs.columns import decoded, edge_column, node_column
from gnnperf.graph.vocabulary import EDGE_KINDS, NODE_KINDS

LOOP, BUFFER, ACCESS, COMPUTE, INTRINSIC = (
    NODE_KINDS.index(kind) for kind in ("loop", "buffer", "access", "compute", "intrinsic")
)


@dataclass(frozen=True)
class Statements:
    """s statements with a accesses. Levels count from the innermost loop around a statement, 0, outwards; D
    is the most there are, missing ones have extent 1.

    graph: of each statement. node: of each statement. loops: around it, as nodes, -1 beyond the outermost.
    levels: how many there are. extent, vectorized, unrolled: of the loops. parallel: loops that one launch
    runs in parallel, also those fused into the annotated one. owner: statement of each access. access: its
    node. stride_bytes: by level and array dimension (0 the last), not negative, 0 where the loop does not
    move it.
    """

    graph: Int64[np.ndarray, " s"]
    node: Int64[np.ndarray, " s"]
    loops: Int64[np.ndarray, "s D"]
    levels: Int64[np.ndarray, " s"]
    extent: Float64[np.ndarray, "s D"]
    vectorized: Bool[np.ndarray, "s D"]
    unrolled: Bool[np.ndarray, "s D"]
    parallel: Bool[np.ndarray, "s D"]
    owner: Int64[np.ndarray, " a"]
    access: Int64[np.ndarray, " a"]
    stride_bytes: Float64[np.ndarray, "a D R"]
    target: Bool[np.ndarray, " a"]
    element_bytes: Float64[np.ndarray, " a"]

    def of_access(self, values: np.ndarray) -> np.ndarray:
        """Values per access, [a, ...], summed per statement, [s, ...]."""
        result = np.zeros((len(self.graph), *values.shape[1:]))
        np.add.at(result, self.owner, values)
        return result


def statements_of(graphs: GraphArrays) -> Statements:
    """The statements of some graphs, in the order of their nodes."""
    kind, nodes = graphs.node_kind, graphs.node_features
    edges = _Edges(graphs)
    parent = np.full(len(kind), -1)
    source, target = edges.ends("contains")
    parent[target] = source
    node = np.flatnonzero((kind == COMPUTE) | (kind == INTRINSIC))
    loops = _stacks(parent, node)
    statement_of = np.full(len(kind), -1)
    statement_of[node] = np.arange(len(node))
    owner, access, written = _accesses(edges, kind, statement_of)
    there = loops >= 0
    extent = np.where(there, np.maximum(decoded(nodes[:, node_column("extent")])[loops], 1), 1.0)
    parallel = there & (nodes[loops, node_column("annotation", "parallel")] > 0)
    collapse = np.where(parallel, decoded(nodes[:, node_column("collapse")])[loops], 0)
    return Statements(
        graphs.graph[node],
        node,
        loops,
        there.sum(1),
        extent,
        there & (nodes[loops, node_column("annotation", "vectorized")] > 0),
        there & (nodes[loops, node_column("annotation", "unrolled")] > 0),
        _with_collapsed(parallel, collapse),
        owner,
        access,
        _strides(edges, loops, owner, access, len(kind)),
        written,
        decoded(nodes[access, node_column("element_bytes")]),
    )


class _Edges:
    """Edges of some graphs, without their reverses."""

    def __init__(self, graphs: GraphArrays) -> None:
        self.kind = graphs.edge_kind
        self.index = graphs.edge_index
        self.features = graphs.edge_features

    def of(self, kind: str) -> Int64[np.ndarray, " m"]:
        return np.flatnonzero(self.kind == EDGE_KINDS.index(kind))

    def ends(self, kind: str) -> tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]:
        found = self.of(kind)
        return self.index[0, found], self.index[1, found]


def _stacks(parent: Int64[np.ndarray, " n"], node: Int64[np.ndarray, " s"]) -> Int64[np.ndarray, "s D"]:
    """Loops around each statement, innermost first, -1 beyond the outermost."""
    columns = []
    at = parent[node]
    while (at >= 0).any():
        columns.append(at)
        at = np.where(at >= 0, parent[at], -1)
    return np.stack(columns, 1) if columns else np.full((len(node), 1), -1)


def _accesses(
    edges: _Edges, kind: Int64[np.ndarray, " n"], statement_of: Int64[np.ndarray, " n"]
) -> tuple[Int64[np.ndarray, " a"], Int64[np.ndarray, " a"], Bool[np.ndarray, " a"]]:
    """(statement, node, whether written) of the accesses that statements make."""
    found: dict[int, tuple[int, bool]] = {}
    source, target = edges.ends("reads")
    ours = (kind[source] == ACCESS) & (statement_of[target] >= 0)
    for access, statement in zip(source[ours].tolist(), statement_of[target[ours]].tolist(), strict=True):
        found[access] = statement, False
    source, target = edges.ends("writes")
    ours = statement_of[source] >= 0
    for access, statement in zip(target[ours].tolist(), statement_of[source[ours]].tolist(), strict=True):
        found[access] = statement, True
    access = np.array(sorted(found), dtype=np.int64)
    owner = np.array([found[a][0] for a in access.tolist()], dtype=np.int64)
    return owner, access, np.array([found[a][1] for a in access.tolist()], dtype=bool)


def _strides(
    edges: _Edges,
    loops: Int64[np.ndarray, "s D"],
    owner: Int64[np.ndarray, " a"],
    access: Int64[np.ndarray, " a"],
    nodes: int,
) -> Float64[np.ndarray, "a D R"]:
    indexes = edges.of("indexes")
    loop, target = edges.index[0, indexes], edges.index[1, indexes]
    number = np.full(nodes, -1)
    number[access] = np.arange(len(access))
    kept = number[target] >= 0
    indexes, loop, mine = indexes[kept], loop[kept], number[target[kept]]
    around = loops[owner[mine]] == loop[:, None]
    level, inside = around.argmax(1), around.any(1)
    indexes, mine, level = indexes[inside], mine[inside], level[inside]
    features = edges.features[indexes]
    dimension = decoded(features[:, edge_column("dimension_from_last")]).astype(np.int64)
    strides = np.zeros((len(access), loops.shape[1], int(dimension.max(initial=0)) + 1))
    stride = np.abs(decoded(features[:, edge_column("stride_bytes")]))
    np.add.at(strides, (mine, level, dimension), stride)
    return strides


def _with_collapsed(
    parallel: Bool[np.ndarray, "s D"], collapse: Float64[np.ndarray, "s D"]
) -> Bool[np.ndarray, "s D"]:
    """The loops inside an annotated one that were fused into it run in parallel too."""
    result = parallel.copy()
    for inward in range(1, int(collapse.max(initial=0))):
        reached = parallel & (collapse > inward)
        result[:, : result.shape[1] - inward] |= reached[:, inward:]
    return result
