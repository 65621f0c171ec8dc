"""Costs of a scheduled program without its edges: what a network reads that passes no messages."""

from __future__ import annotations

import torch
from torch import Tensor


def pool_costs(node_costs: Tensor, carried: Tensor, batch: Tensor, graphs: int) -> Tensor:
    """Mean and maximum of every cost field over the nodes of each graph that carry it.

    Args:
        node_costs: f32[n, C].
        carried: f32[n, C], 1 where a node carries the field, else 0.
        batch: i64[n], the graph of each node.
        graphs: b.

    Returns:
        f32[b, 2 C], the means, then the maxima; 0 where no node of the graph carries the field.
    """
    width = node_costs.size(1)
    empty = torch.zeros((graphs, width), dtype=node_costs.dtype, device=node_costs.device)
    count = empty.index_add(0, batch, carried)
    mean = empty.index_add(0, batch, node_costs * carried) / count.clamp_min(1.0)
    index = batch.unsqueeze(1).expand_as(node_costs)
    low = torch.full_like(empty, -1e30)
    most = low.scatter_reduce(0, index, torch.where(carried > 0, node_costs, -1e30), "amax")
    return torch.cat([mean, torch.where(count > 0, most, empty)], 1)


def log_sum_exp(rows: Tensor, counted: Tensor, batch: Tensor, graphs: int) -> Tensor:
    """ln of the sum of exp(row) over the counted rows of each graph: f32[n], bool[n], i64[n] -> f32[b]; about
    -58, the least there is, where none counts."""
    shown = torch.where(counted, rows, -30.0)
    floor = torch.full((graphs,), -30.0, dtype=rows.dtype, device=rows.device)
    # The maximum is subtracted because exp() of a large number overflows; it is a constant shift.
    most = floor.scatter_reduce(0, batch, shown.detach(), "amax")
    terms = torch.where(counted, (shown - most.index_select(0, batch)).exp(), 0.0)
    total = torch.zeros_like(floor).index_add(0, batch, terms)
    return most + total.clamp_min(1e-12).log()
