"""The loss of the cost model: ranks schedules within each workload, by how much they differ."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RankingLoss(nn.Module):
    """Orders the schedules of each workload, the fastest above all.

    What: the sum of three terms, each a mean over workloads.
    1. Cross-entropy between softmax(scores) and softmax(ln throughput / temperature), the listwise loss of
       ListNet: the best schedules must come first.
    2. Logistic loss of pairs, weighted by the difference of their normalised throughput (what swapping them
       costs, as in LambdaRank). Pairs that are ties count nothing.
    3. Huber loss of the scores against ln throughput, both less their mean over the workload: keeps
       the distances, which a ranking alone does not need, comparable between judges.

    Args:
        temperature: of the target distribution, in nats of throughput.
        regression: weight of the third term.

    References:
        Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach" (ICML'07); Burges, "From
        RankNet to LambdaRank to LambdaMART" (2010); both as used in TenSet (NeurIPS'21) and TLP (ASPLOS'23).
    """

    def __init__(self, temperature: float = 0.2, regression: float = 1.0) -> None:
        super().__init__()
        self.temperature = temperature
        self.regression = regression

    def forward(self, scores: Tensor, log_throughput: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Loss of w workloads with up to m schedules each.

        Args:
            scores: f32[w, m], predicted.
            log_throughput: f32[w, m], ln(best runtime / runtime), at most 0; NaN where there is no schedule.
            low, high: f32[w, m], ends of its interval.

        Returns:
            A scalar.
        """
        there = ~log_throughput.isnan()
        truth = log_throughput.nan_to_num()
        count = there.sum(1).clamp(min=1)
        target = (truth / self.temperature).masked_fill(~there, float("-inf")).softmax(1)
        listwise = -(target * scores.masked_fill(~there, -1e9).log_softmax(1)).sum(1)
        apart = (low.unsqueeze(2) > high.unsqueeze(1)) & there.unsqueeze(2) & there.unsqueeze(1)
        throughput = truth.exp()
        weight = (throughput.unsqueeze(2) - throughput.unsqueeze(1)) * apart
        order = F.softplus(scores.unsqueeze(1) - scores.unsqueeze(2))
        pairs = (weight * order).sum((1, 2)) / weight.sum((1, 2)).clamp(min=1e-6)
        error = _centred(scores, there, count) - _centred(truth, there, count)
        huber = F.huber_loss(error, torch.zeros_like(error), reduction="none", delta=0.5)
        distance = (huber * there).sum(1) / count
        return (listwise + pairs + self.regression * distance).mean()


def _centred(values: Tensor, there: Tensor, count: Tensor) -> Tensor:
    mean = (values * there).sum(1, keepdim=True) / count.unsqueeze(1)
    return (values - mean) * there
