"""Standardisation of input features with statistics that are stored with the weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Standardise(nn.Module):
    """(x - mean) / deviation per column, clamped to +-limit. Only the clamp until `fit` is called.

    The limit is there because a feature that hardly varied in the training corpus must not drown
    all others when a new program has an unusual value of it.

    Args:
        width: number of columns.
        limit: in deviations.
    """

    def __init__(self, width: int, limit: float = 6.0) -> None:
        super().__init__()
        self.limit = limit
        self.mean = nn.Buffer(torch.zeros(width))
        self.deviation = nn.Buffer(torch.ones(width))

    def fit(self, rows: Tensor) -> None:
        """Take the statistics of f32[n, width]; NaN entries (absent values) are left out."""
        present = ~rows.isnan()
        count = present.sum(0).clamp(min=1)
        mean = rows.nan_to_num().sum(0) / count
        variance = ((rows - mean).nan_to_num() ** 2).sum(0) / count
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(variance > 1e-8, variance.sqrt(), torch.ones_like(variance)))

    def forward(self, rows: Tensor) -> Tensor:
        """f32[n, width] -> f32[n, width]; NaN stays NaN."""
        return ((rows - self.mean) / self.deviation).clamp(-self.limit, self.limit)
