"""Message passing over typed graphs with edge features, and the readout of a graph: torch-geometric's.

This is what is trained. Importing torch-geometric costs a command 1.4 to 1.8 s, so that what only embeds
is `gnnperf.nn.lean`, which has the same weights by the same names; nothing imports this module at its top.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import AttentionalAggregation, TransformerConv


class TransformerLayer(nn.Module):
    """Pre-norm residual block: the graph transformer of "Masked Label Prediction" (Shi et al., IJCAI'21),
    then a two-layer perceptron on each node.

    Args:
        width: width of node states.
        heads: number of heads; divides `width`.
        edge_kinds: number of edge kinds.
        edge_features: width of the edge features.
        dropout: probability, in training only.
    """

    def __init__(self, width: int, heads: int, edge_kinds: int, edge_features: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = TransformerConv(
            width, width // heads, heads, edge_dim=edge_features + edge_kinds, root_weight=False
        )
        # Made all the same, without root weight: weights that nothing uses, which DistributedDataParallel
        # would wait for.
        self.attention.lin_skip = None
        with torch.no_grad():  # a linear layer of the features plus an embedding of the kind, in one matrix
            features, kinds = self.attention.lin_edge.weight.split([edge_features, edge_kinds], dim=1)
            nn.init.kaiming_uniform_(features, a=math.sqrt(5))
            nn.init.normal_(kinds)
        self.output = nn.Linear(width, width)
        self.perceptron_norm = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, nodes: Tensor, edge_index: Tensor, edges: Tensor) -> Tensor:
        """f32[n, width], i64[2, e], f32[e, edge_features + edge_kinds] -> f32[n, width]."""
        messages = self.output(self.attention(self.attention_norm(nodes), edge_index, edges))
        nodes = nodes + self.dropout(messages)
        return nodes + self.dropout(self.perceptron(self.perceptron_norm(nodes)))


class GraphTransformer(nn.Module):
    """Layers of message passing; arguments as of `TransformerLayer`."""

    def __init__(
        self, width: int, layers: int, heads: int, edge_kinds: int, edge_features: int, dropout: float
    ) -> None:
        super().__init__()
        self.edge_kinds = edge_kinds
        self.layers = nn.ModuleList(
            TransformerLayer(width, heads, edge_kinds, edge_features, dropout) for _ in range(layers)
        )

    def forward(self, nodes: Tensor, edge_index: Tensor, edge_kind: Tensor, edge_features: Tensor) -> Tensor:
        """f32[n, width], i64[2, e], i64[e], f32[e, G] -> f32[n, width]."""
        marks = F.one_hot(edge_kind, self.edge_kinds).to(edge_features.dtype)
        edges = torch.cat([edge_features, marks], dim=1)
        for layer in self.layers:
            nodes = layer(nodes, edge_index, edges)
        return nodes


class HeadGates(nn.Linear):
    """A score for each head, repeated for each of the columns that the head owns."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.head_width = width // heads

    def forward(self, nodes: Tensor) -> Tensor:
        """f32[n, width] -> f32[n, width]."""
        return super().forward(nodes).repeat_interleave(self.head_width, dim=1)


def attention_readout(width: int, heads: int) -> AttentionalAggregation:
    """A graph's state from its nodes' states: each head attends to the nodes it cares about."""
    return AttentionalAggregation(HeadGates(width, heads), nn.Linear(width, width))
