"""Correlation of similarities with the order of measured regrets."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


class RankCorrelationLoss(nn.Module):
    """The more two programs lose by each other's schedules, the farther apart they are.

    For program i, the ranks of the regrets of all partners j (ties share their mean rank) and the
    similarities to them are correlated (Pearson); the loss is 1 plus the mean correlation, from 0 where
    every order is as measured to 2 where it is reversed. Rows with fewer than `least` measured partners,
    or with regrets all alike, are left out; NaN marks a pair that was not measured.

    Args:
        least: measured partners of a row that counts.

    References:
        Spearman's rank correlation with the ranks of one side left as the numbers that they are of, so that
        it has a gradient.

    Relations:
        `ContrastiveLoss` is about which partners are nearest and little else: a softmax hardly sees those
        behind them. This one orders all of them, the far ones as well.
    """

    def __init__(self, least: int = 4) -> None:
        super().__init__()
        self.least = least

    def forward(self, similarity: Float[Tensor, "i j"], regret: Float[Tensor, "i j"]) -> Float[Tensor, ""]:
        """In [0, 2]."""
        known = ~regret.isnan()
        ranks = _ranks(regret.nan_to_num(), known)
        x, y = (_centred(values, known) for values in (similarity, ranks))
        scale = x.norm(dim=1) * y.norm(dim=1)
        rows = (known.sum(1) >= self.least) & (y.abs().amax(1) > 0)
        if not rows.any():
            return similarity.sum() * 0.0
        return 1.0 + ((x * y).sum(1)[rows] / scale[rows].clamp_min(1e-6)).mean()


def _ranks(values: Float[Tensor, "i j"], known: Tensor) -> Float[Tensor, "i j"]:
    """How many of the known values of its row each one is above, those that equal it counting half."""
    here, other = values.unsqueeze(2), values.unsqueeze(1)
    above = (other < here).to(values) + 0.5 * (other == here).to(values)
    return (above * known.unsqueeze(1)).sum(2)


def _centred(values: Float[Tensor, "i j"], known: Tensor) -> Float[Tensor, "i j"]:
    """Less the mean of the known ones of the row; 0 where not known."""
    mean = (values * known).sum(1, keepdim=True) / known.sum(1, keepdim=True).clamp(min=1)
    return torch.where(known, values - mean, 0.0)
