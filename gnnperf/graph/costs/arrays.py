"""Encoded graphs as arrays, many side by side: what costs are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float32, Int64

from gnnperf.graph.encoding import EncodedGraph
from gnnperf.graph.fields import EDGE_FEATURES, GRAPH_FEATURES, NODE_FEATURES

if TYPE_CHECKING:
    from gnnperf.graph.collation import GraphBatch


class GraphArrays(NamedTuple):
    """b graphs as one disconnected graph. graph: of every node; the rest is named as in `EncodedGraph`."""

    node_kind: Int64[np.ndarray, " n"]
    node_features: Float32[np.ndarray, "n F"]
    edge_index: Int64[np.ndarray, "2 e"]
    edge_kind: Int64[np.ndarray, " e"]
    edge_features: Float32[np.ndarray, "e G"]
    graph_features: Float32[np.ndarray, "b H"]
    graph: Int64[np.ndarray, " n"]

    @staticmethod
    def of_batch(batch: GraphBatch) -> GraphArrays:
        """The same numbers as a batch of tensors on the CPU; nothing is copied."""
        kind, features, index, edge_kind, edge_features, graph_features, _, graph = map(np.asarray, batch)
        return GraphArrays(kind, features, index, edge_kind, edge_features, graph_features, graph)

    @staticmethod
    def of(graphs: Sequence[EncodedGraph]) -> GraphArrays:
        """Graphs one after the other."""
        sizes = [len(g.node_kind) for g in graphs]
        starts = np.cumsum([0, *sizes], dtype=np.int64)
        none = _NONE
        return GraphArrays(
            np.concatenate([none.node_kind, *(g.node_kind for g in graphs)]),
            np.concatenate([none.node_features, *(g.node_features for g in graphs)]),
            np.concatenate(
                [none.edge_index, *(g.edge_index + at for g, at in zip(graphs, starts, strict=False))], axis=1
            ),
            np.concatenate([none.edge_kind, *(g.edge_kind for g in graphs)]),
            np.concatenate([none.edge_features, *(g.edge_features for g in graphs)]),
            np.concatenate([none.graph_features, *(g.graph_features[None] for g in graphs)]),
            np.repeat(np.arange(len(graphs), dtype=np.int64), sizes),
        )


def _no_graphs() -> GraphArrays:
    integers = np.zeros(0, np.int64)
    return GraphArrays(
        integers,
        np.zeros((0, NODE_FEATURES), np.float32),
        np.zeros((2, 0), np.int64),
        integers,
        np.zeros((0, EDGE_FEATURES), np.float32),
        np.zeros((0, GRAPH_FEATURES), np.float32),
        integers,
    )


_NONE = _no_graphs()
