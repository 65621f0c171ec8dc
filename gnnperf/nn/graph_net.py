"""What all networks over program graphs share: message passing, and a readout of every graph."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnnperf.graph import (
    EDGE_FEATURES,
    EDGE_KINDS,
    GRAPH_FEATURES,
    NODE_FEATURES,
    NODE_KINDS,
    GraphBatch,
)
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn.lean import LeanReadout, LeanTransformer
from gnnperf.nn.scaling import Standardise

NETWORK = "torch-geometric TransformerConv"
"""What checkpoints say of the layers that their weights are of."""


class CostInput(nn.Module):
    """Cost fields (`gnnperf.graph.costs`), standardised over the nodes whose kind carries them."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = Standardise(len(COST_FIELDS))
        carried = [[float(kind in field.kinds) for field in COST_FIELDS] for kind in NODE_KINDS]
        self.carried = nn.Buffer(torch.tensor(carried), persistent=False)

    def forward(self, node_kind: Tensor, node_costs: Tensor) -> Tensor:
        """i64[n], f32[n, C] as `GraphCosts.node_rows` gives them -> f32[n, C]; 0 where not carried."""
        return self.scale(node_costs) * self.carried.index_select(0, node_kind)

    def fit(self, node_kind: Tensor, node_costs: Tensor) -> None:
        """Take the statistics of the nodes that carry each field."""
        absent = self.carried.index_select(0, node_kind) == 0
        self.scale.fit(node_costs.masked_fill(absent, float("nan")))


class GraphNet(nn.Module):
    """Typed message passing, attention readout, and the values of the graph as a whole. Nodes of scheduled
    graphs come with what they cost.

    Args:
        width: of node states and of the readout. layers: of message passing. heads: of attention, which
            divide the width. dropout: probability, in training only.
        lean: compute with `gnnperf.nn.lean`, for inference only, instead of torch-geometric, which is then
            not imported. Weights have the same names and shapes, results agree to 1e-6.
    """

    def __init__(self, width: int, layers: int, heads: int, dropout: float, lean: bool = False) -> None:
        super().__init__()
        self.node_scale = Standardise(NODE_FEATURES)
        self.edge_scale = Standardise(EDGE_FEATURES)
        self.graph_scale = Standardise(GRAPH_FEATURES)
        self.node_kind = nn.Embedding(len(NODE_KINDS), width)
        self.node = nn.Linear(NODE_FEATURES, width)
        sizes = width, layers, heads, len(EDGE_KINDS), EDGE_FEATURES
        self.passing: nn.Module
        self.readout: nn.Module
        if lean:
            self.passing = LeanTransformer(*sizes)
            self.readout = LeanReadout(width, heads)
        else:
            from gnnperf.nn.message_passing import GraphTransformer, attention_readout

            self.passing = GraphTransformer(*sizes, dropout)
            self.readout = attention_readout(width, heads)
        self.norm = nn.LayerNorm(width)
        self.graph_values = nn.Linear(GRAPH_FEATURES, width)
        self.costs = CostInput()
        self.cost = nn.Linear(len(COST_FIELDS), width, bias=False)

    def node_states(
        self,
        node_kind: Tensor,
        node_features: Tensor,
        edge_index: Tensor,
        edge_kind: Tensor,
        edge_features: Tensor,
        added: Tensor | None = None,
    ) -> Tensor:
        """i64[n], f32[n, F], i64[2, e], i64[e], f32[e, G], and what else is known of the nodes, f32[n, width]
        -> f32[n, width]."""
        nodes = self.node(self.node_scale(node_features)) + self.node_kind(node_kind)
        if added is not None:
            nodes = nodes + added
        edges = self.edge_scale(edge_features)
        return self.norm(self.passing(nodes, edge_index, edge_kind, edges))

    def graph_states(
        self,
        node_kind: Tensor,
        node_features: Tensor,
        edge_index: Tensor,
        edge_kind: Tensor,
        edge_features: Tensor,
        graph_features: Tensor,
        ptr: Tensor,
        batch: Tensor,
    ) -> Tensor:
        """f32[b, width] of the b graphs of a batch, whose fields these are."""
        nodes = self.node_states(node_kind, node_features, edge_index, edge_kind, edge_features)
        return self.readout_states(nodes, graph_features, ptr, batch)

    def readout_states(self, nodes: Tensor, graph_features: Tensor, ptr: Tensor, batch: Tensor) -> Tensor:
        """The graphs of these node states: f32[n, width], f32[b, H], i64[b + 1], i64[n] -> f32[b, width]."""
        # The number of graphs is a shape (of ptr), not a value: what torch.export can follow.
        state: Tensor = self.readout(nodes, batch, None, ptr.size(0) - 1)
        return state + self.graph_values(self.graph_scale(graph_features))

    def states(
        self,
        node_kind: Tensor,
        node_features: Tensor,
        edge_index: Tensor,
        edge_kind: Tensor,
        edge_features: Tensor,
        graph_features: Tensor,
        ptr: Tensor,
        batch: Tensor,
        node_costs: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Scheduled graphs, as a head reads them: `net.states(*graphs, node_costs)`.

        Args:
            node_kind to batch: fields of a `GraphBatch` of b graphs with n nodes.
            node_costs: f32[n, C], `GraphCosts.node_rows`.

        Returns:
            f32[n, width + C], states of the nodes with their standardised costs behind; f32[b, width].
        """
        costs = self.costs(node_kind, node_costs)
        nodes = self.node_states(
            node_kind, node_features, edge_index, edge_kind, edge_features, self.cost(costs)
        )
        return torch.cat([nodes, costs], 1), self.readout_states(nodes, graph_features, ptr, batch)

    @torch.jit.unused
    def fit_scales(
        self, scheduled: GraphBatch, node_costs: Tensor, programs: GraphBatch | None = None
    ) -> None:
        """Take the statistics of the inputs from scheduled graphs with their node costs, and from programs as
        they are, where these are learned from too."""
        graphs = [scheduled] if programs is None else [programs, scheduled]
        self.node_scale.fit(torch.cat([g.node_features for g in graphs]))
        self.edge_scale.fit(torch.cat([g.edge_features for g in graphs]))
        self.graph_scale.fit(torch.cat([g.graph_features for g in graphs]))
        self.costs.fit(scheduled.node_kind, node_costs)
