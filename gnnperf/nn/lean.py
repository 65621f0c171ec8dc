"""The networks over graphs on plain tensors, for inference: the same weights, by the same names.

What `gnnperf.nn.message_passing` trains with the layers of torch-geometric is computed here with fewer and
cheaper operations. Artefacts are exported from it, and a loaded checkpoint embeds with it, so that a command
need not import torch-geometric, which costs 1.4 to 1.8 s. Edges are sorted by their target once, so that
sums over the edges of a node are runs of rows; sums of messages are divided by their weights once for each
node instead of once for each edge; and what nobody else reads is changed in place, which is why there are no
gradients here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def segment_softmax(scores: Tensor, segment: Tensor, segments: int) -> Tensor:
    """Softmax over the rows of each segment (those of one graph, say), one column at a time.

    Args:
        scores: f32[n, heads].
        segment: i64[n], the segment of each row, in [0, segments).
        segments: number of segments; some may be empty.

    Returns:
        f32[n, heads]; the rows of each segment sum to 1.
    """
    index = segment.unsqueeze(1).expand_as(scores)
    floor = torch.full((segments, scores.size(1)), float("-inf"), dtype=scores.dtype, device=scores.device)
    # The maximum is subtracted because exp() of a large score overflows; it is a constant shift
    # within a segment, so no gradient needs to flow through it.
    maximum = floor.scatter_reduce(0, index, scores.detach(), "amax")
    weights = (scores - maximum.index_select(0, segment)).exp()
    total = segment_sum(weights, segment, segments)
    return weights / total.index_select(0, segment)


def segment_sum(rows: Tensor, segment: Tensor, segments: int) -> Tensor:
    """Sum of the rows of each segment: f32[n, c], i64[n] -> f32[segments, c]; 0 where empty."""
    zero = torch.zeros((segments, rows.size(1)), dtype=rows.dtype, device=rows.device)
    return zero.index_add(0, segment, rows)


def _summed(rows: Tensor, starts: Tensor) -> Tensor:
    """Sums of the runs of rows that begin at `starts`: f32[e, c], i64[n] -> f32[n, c]; 0 of an empty run."""
    every = torch.arange(rows.size(0), device=rows.device)
    return torch.embedding_bag(rows, every, starts, False, 0, False, None, False)[0]


class LeanAttention(nn.Module):
    """`TransformerConv` without a root weight, of edges that are sorted by target."""

    def __init__(self, width: int, heads: int, edge_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_width = width // heads
        self.scale = 1.0 / math.sqrt(width // heads)
        self.lin_key = nn.Linear(width, width)
        self.lin_query = nn.Linear(width, width)
        self.lin_value = nn.Linear(width, width)
        self.lin_edge = nn.Linear(edge_width, width, bias=False)

    def forward(self, nodes: Tensor, source: Tensor, target: Tensor, starts: Tensor, edges: Tensor) -> Tensor:
        """f32[n, width], i64[e], i64[e] ascending, i64[n] (first edge of each node), f32[e, edge_width]
        -> f32[n, width]."""
        n, e, heads, width = nodes.size(0), source.size(0), self.heads, self.head_width
        # In place, where nobody else has the tensor: what is in the cache stays there.
        edge = self.lin_edge(edges)
        key = self.lin_key(nodes).index_select(0, source).add_(edge)
        weight, bias = self.lin_query.weight.t(), self.lin_query.bias
        query = torch.addmm(bias, nodes, weight, beta=self.scale, alpha=self.scale).index_select(0, target)
        scores = query.mul_(key).view(e, heads, width).sum(-1)
        index = target.unsqueeze(1).expand_as(scores)
        floor = torch.full((n, heads), float("-inf"), dtype=scores.dtype, device=scores.device)
        maximum = floor.scatter_reduce(0, index, scores, "amax")
        weights = scores.sub_(maximum.index_select(0, target)).exp_()
        value = self.lin_value(nodes).index_select(0, source).add_(edge).view(e, heads, width)
        messages = value.mul_(weights.unsqueeze(-1)).view(e, heads * width)
        # Of a node that edges enter, the largest weight is 1; of any other, the sums are 0 and stay 0.
        total = _summed(weights, starts).clamp_min(1.0)
        summed = _summed(messages, starts).view(n, heads, width).div_(total.unsqueeze(-1))
        return summed.view(n, heads * width)


class LeanLayer(nn.Module):
    """`gnnperf.nn.message_passing.TransformerLayer` without its dropout."""

    def __init__(self, width: int, heads: int, edge_width: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = LeanAttention(width, heads, edge_width)
        self.output = nn.Linear(width, width)
        self.perceptron_norm = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, nodes: Tensor, source: Tensor, target: Tensor, starts: Tensor, edges: Tensor) -> Tensor:
        """As of `LeanAttention.forward`."""
        near = self.attention_norm(nodes)
        nodes = nodes + self.output(self.attention(near, source, target, starts, edges))
        return nodes + self.perceptron(self.perceptron_norm(nodes))


class LeanTransformer(nn.Module):
    """`gnnperf.nn.message_passing.GraphTransformer`."""

    def __init__(self, width: int, layers: int, heads: int, edge_kinds: int, edge_features: int) -> None:
        super().__init__()
        self.marks = nn.Buffer(torch.eye(edge_kinds), persistent=False)
        self.layers = nn.ModuleList(
            LeanLayer(width, heads, edge_features + edge_kinds) for _ in range(layers)
        )

    def forward(self, nodes: Tensor, edge_index: Tensor, edge_kind: Tensor, edge_features: Tensor) -> Tensor:
        """f32[n, width], i64[2, e], i64[e], f32[e, G] -> f32[n, width]."""
        target, order = torch.sort(edge_index[1], stable=True)
        source = edge_index[0].index_select(0, order)
        starts = torch.searchsorted(target, torch.arange(nodes.size(0), device=target.device))
        marks = self.marks.index_select(0, edge_kind.index_select(0, order))
        edges = torch.cat([edge_features.index_select(0, order), marks], dim=1)
        for layer in self.layers:
            nodes = layer(nodes, source, target, starts, edges)
        return nodes


class LeanReadout(nn.Module):
    """`gnnperf.nn.message_passing.attention_readout`."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_width = width // heads
        self.gate_nn = nn.Linear(width, heads)
        self.nn = nn.Linear(width, width)

    def forward(self, nodes: Tensor, batch: Tensor, ptr: Tensor | None, graphs: int) -> Tensor:
        """f32[n, width], i64[n] (graph of each node), not used, number of graphs -> f32[graphs, width]."""
        weights = segment_softmax(self.gate_nn(nodes), batch, graphs)
        values = self.nn(nodes).view(nodes.size(0), self.heads, self.head_width) * weights.unsqueeze(-1)
        return segment_sum(values.flatten(1), batch, graphs)
