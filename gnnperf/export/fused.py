"""The encoder's message passing with fewer and cheaper operations, for artefacts: the same numbers.

What the layers of the encoder write down for training, in the order in which it is explained, is put
together here, with the same weights: edges are sorted by their target once, so that sums over the edges of a
node are runs of rows; sums of messages are divided by their weights once for each node instead of once for
each edge; queries are scaled by scaled weights; and what nobody else reads is changed in place.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnnperf.nn import Encoder
from gnnperf.nn.message_passing import MessagePassingLayer, TypedAttention


def _scaled(layer: nn.Linear, scale: float) -> nn.Linear:
    """The layer with its outputs times a factor."""
    scaled = nn.Linear(layer.in_features, layer.out_features)
    with torch.no_grad():
        scaled.weight.copy_(scale * layer.weight)
        scaled.bias.copy_(scale * layer.bias)
    return scaled


def _summed(rows: Tensor, starts: Tensor) -> Tensor:
    """Sums of the runs of rows that begin at `starts`: f32[e, c], i64[n] -> f32[n, c]; 0 of an empty run."""
    every = torch.arange(rows.size(0), device=rows.device)
    return torch.embedding_bag(rows, every, starts, False, 0, False, None, False)[0]


class FusedAttention(nn.Module):
    """`TypedAttention` of edges that are sorted by target."""

    def __init__(self, attention: TypedAttention) -> None:
        super().__init__()
        self.heads = attention.heads
        self.head_width = attention.head_width
        self.query = _scaled(attention.query, attention.scale)
        self.key, self.value, self.output = attention.key, attention.value, attention.output
        self.edge, self.edge_kind = attention.edge, attention.edge_kind

    def forward(
        self,
        nodes: Tensor,
        source: Tensor,
        target: Tensor,
        starts: Tensor,
        edge_kind: Tensor,
        edge_features: Tensor,
    ) -> Tensor:
        """f32[n, width], i64[e], i64[e] ascending, i64[n] (first edge of each node), i64[e], f32[e, G]
        -> f32[n, width]."""
        n, e, heads, width = nodes.size(0), source.size(0), self.heads, self.head_width
        # In place, where nobody else has the tensor: what is in the cache stays there.
        edge = self.edge(edge_features).add_(self.edge_kind(edge_kind))
        key = self.key(nodes).index_select(0, source).add_(edge)
        scores = self.query(nodes).index_select(0, target).mul_(key).view(e, heads, width).sum(-1)
        index = target.unsqueeze(1).expand_as(scores)
        floor = torch.full((n, heads), float("-inf"), dtype=scores.dtype, device=scores.device)
        maximum = floor.scatter_reduce(0, index, scores, "amax")
        weights = scores.sub_(maximum.index_select(0, target)).exp_()
        value = self.value(nodes).index_select(0, source).add_(edge).view(e, heads, width)
        messages = value.mul_(weights.unsqueeze(-1)).view(e, heads * width)
        # Of a node that edges enter, the largest weight is 1; of any other, the sums are 0 and stay 0.
        total = _summed(weights, starts).clamp_min(1.0)
        summed = _summed(messages, starts).view(n, heads, width).div_(total.unsqueeze(-1))
        return self.output(summed.view(n, heads * width))


class FusedLayer(nn.Module):
    """`MessagePassingLayer` without its dropout."""

    def __init__(self, layer: MessagePassingLayer) -> None:
        super().__init__()
        self.attention_norm = layer.attention_norm
        self.attention = FusedAttention(layer.attention)
        self.perceptron_norm = layer.perceptron_norm
        self.perceptron = layer.perceptron

    def forward(
        self,
        nodes: Tensor,
        source: Tensor,
        target: Tensor,
        starts: Tensor,
        edge_kind: Tensor,
        edge_features: Tensor,
    ) -> Tensor:
        """As of `FusedAttention.forward`."""
        near = self.attention_norm(nodes)
        nodes = nodes + self.attention(near, source, target, starts, edge_kind, edge_features)
        return nodes + self.perceptron(self.perceptron_norm(nodes))


class FusedEncoder(nn.Module):
    """`Encoder.fingerprint` and `Encoder.project`."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        layers = [layer for layer in encoder.layers if isinstance(layer, MessagePassingLayer)]
        self.node_scale, self.edge_scale = encoder.node_scale, encoder.edge_scale
        self.node_kind, self.node = encoder.node_kind, encoder.node
        self.layers = nn.ModuleList(FusedLayer(layer) for layer in layers)
        self.norm, self.readout = encoder.norm, encoder.readout
        self.graph_scale, self.graph_values = encoder.graph_scale, encoder.graph_values
        self.profile, self.project = encoder.profile, encoder.project

    @torch.jit.export
    def fingerprint(
        self,
        node_kind: Tensor,
        node_features: Tensor,
        edge_index: Tensor,
        edge_kind: Tensor,
        edge_features: Tensor,
        graph_features: Tensor,
        ptr: Tensor,
        batch: Tensor,
        profile: Tensor,
    ) -> Tensor:
        """As of `Encoder.fingerprint`, with a profile: f32[b, width]."""
        nodes = self.node(self.node_scale(node_features)) + self.node_kind(node_kind)
        target, order = torch.sort(edge_index[1], stable=True)
        source = edge_index[0].index_select(0, order)
        numbers = torch.arange(nodes.size(0), device=target.device)
        starts = torch.searchsorted(target, numbers)
        kinds = edge_kind.index_select(0, order)
        edges = self.edge_scale(edge_features.index_select(0, order))
        for layer in self.layers:
            nodes = layer(nodes, source, target, starts, kinds, edges)
        state = self.readout(self.norm(nodes), batch, ptr.size(0) - 1)
        return state + self.graph_values(self.graph_scale(graph_features)) + self.profile(profile)
