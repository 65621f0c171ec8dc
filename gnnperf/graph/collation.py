"""Encoded graphs -> one batch of torch tensors (torch is imported only when collating)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gnnperf.errors import InputError
from gnnperf.graph.encoding import EncodedGraph

if TYPE_CHECKING:
    from torch import Tensor, device


class GraphBatch(NamedTuple):
    """b graphs as one disconnected graph; a plain tuple of tensors, so it traces and scripts.

    Graph g owns the nodes ptr[g]:ptr[g+1]; `batch` is the graph of every node. Widths F, G, H are
    NODE_FEATURES, EDGE_FEATURES, GRAPH_FEATURES.
    """

    node_kind: Tensor  # i64[n]
    node_features: Tensor  # f32[n, F]
    edge_index: Tensor  # i64[2, e]
    edge_kind: Tensor  # i64[e]
    edge_features: Tensor  # f32[e, G]
    graph_features: Tensor  # f32[b, H]
    ptr: Tensor  # i64[b + 1]
    batch: Tensor  # i64[n]

    @staticmethod
    def of(batch: Any) -> GraphBatch:
        """What a network reads of a torch-geometric `Batch` of `ProgramGraph.to_pyg()`."""
        return GraphBatch(*(batch[name] for name in GraphBatch._fields))

    def to(self, target: str | device) -> GraphBatch:
        """The batch on another device."""
        return GraphBatch(*(tensor.to(target) for tensor in self))


def collate(graphs: Sequence[EncodedGraph]) -> GraphBatch:
    """Concatenate graphs, shifting node numbers; InputError for an empty list."""
    import torch

    from gnnperf.graph.costs.arrays import GraphArrays

    if not graphs:
        raise InputError("expected at least one graph to collate, got none")
    *arrays, graph = GraphArrays.of(graphs)
    ptr = np.cumsum([0, *(len(g.node_kind) for g in graphs)], dtype=np.int64)
    return GraphBatch(*map(torch.from_numpy, (*arrays, ptr, graph)))


def tensors_of(graph: EncodedGraph) -> dict[str, Tensor]:
    """What a network reads of one graph, by the names of `GraphBatch`; nothing is copied."""
    import torch

    tensors = {name: torch.from_numpy(getattr(graph, name)) for name in EncodedGraph.__slots__}
    return {**tensors, "graph_features": tensors["graph_features"][None]}
