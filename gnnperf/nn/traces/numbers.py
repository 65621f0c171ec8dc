"""Cost fields of statements with their operations and what is known of the graph, as tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph import GRAPH_FEATURES, NODE_FIELDS, GraphBatch
from gnnperf.graph.costs import STATEMENT_COSTS, GraphArrays, GraphCosts
from gnnperf.graph.costs.columns import columns_of

if TYPE_CHECKING:
    from torch import Tensor

_OPERATIONS = columns_of(
    NODE_FIELDS, "operations", "reduction", "guarded", "flops", "dtype", "m_extent", "n_extent", "k_extent"
)
NUMBERS: tuple[str, ...] = (
    *(field.name for field in STATEMENT_COSTS),
    *(f"operations_{n}" for n in range(len(_OPERATIONS))),
    *(f"graph_{n}" for n in range(GRAPH_FEATURES)),
)
"""Names of the columns of `StatementNumbers.rows`: logarithms to base 2 of counts and sizes, or flags."""


class StatementNumbers(NamedTuple):
    """rows: f32[s, len(NUMBERS)] of s statements. graph: i64[s], the graph of each; every graph has one."""

    rows: Tensor
    graph: Tensor


class BatchNumbers(NamedTuple):
    """node_costs: f32[n, C] of n nodes, see `GraphCosts.node_rows`. statements: of those among them."""

    node_costs: Tensor
    statements: StatementNumbers


def batch_numbers(batch: GraphBatch, threads: int, vectors: VectorUnit = AVX512) -> BatchNumbers:
    """What the nodes of a batch cost, and the numbers of all its statements. threads: that parallel loops are
    shared by. vectors: of the machine."""
    costs = GraphCosts(GraphArrays.of_batch(batch), threads, vectors)
    graphs, nodes = costs.graphs, costs.statement_nodes
    graph = graphs.graph[nodes]
    rows = np.concatenate(
        [costs.statement_rows, graphs.node_features[nodes][:, _OPERATIONS], graphs.graph_features[graph]],
        axis=1,
    )
    statements = StatementNumbers(torch.from_numpy(rows), torch.from_numpy(graph))
    return BatchNumbers(torch.from_numpy(costs.node_rows()), statements)
