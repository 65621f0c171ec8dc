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

    if not graphs:
        raise InputError("expected at least one graph to collate, got none")
    sizes = [len(g.node_kind) for g in graphs]
    ptr = np.cumsum([0, *sizes], dtype=np.int64)
    arrays = (
        np.concatenate([g.node_kind for g in graphs]),
        np.concatenate([g.node_features for g in graphs]),
        np.concatenate([g.edge_index + start for g, start in zip(graphs, ptr, strict=False)], axis=1),
        np.concatenate([g.edge_kind for g in graphs]),
        np.concatenate([g.edge_features for g in graphs]),
        np.stack([g.graph_features for g in graphs]),
        ptr,
        np.repeat(np.arange(len(graphs), dtype=np.int64), sizes),
    )
    return GraphBatch(*(torch.from_numpy(array) for array in arrays))
