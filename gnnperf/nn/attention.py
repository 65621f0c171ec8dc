"""Attention over segments: a softmax per segment, and the readout of a graph from its nodes.

A segment is a run of rows that belong together: the edges that enter one node, or the nodes of one
graph. Everything here is plain tensors, so that `torch.jit.script` and `torch.export` take it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def segment_softmax(scores: Tensor, segment: Tensor, segments: int) -> Tensor:
    """Softmax over the rows of each segment, one column (head) at a time.

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


class AttentionReadout(nn.Module):
    """A graph's state from its nodes' states: each head attends to the nodes it cares about.

    Args:
        width: width of the node states and of the result.
        heads: number of heads; divides `width`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_width = width // heads
        self.score = nn.Linear(width, heads)
        self.value = nn.Linear(width, width)

    def forward(self, nodes: Tensor, batch: Tensor, graphs: int) -> Tensor:
        """f32[n, width], i64[n] (graph of each node), number of graphs -> f32[graphs, width]."""
        weights = segment_softmax(self.score(nodes), batch, graphs)
        values = self.value(nodes).view(nodes.size(0), self.heads, self.head_width) * weights.unsqueeze(-1)
        return segment_sum(values.flatten(1), batch, graphs)
