"""Loss of the head that ranks schedules, on measured efficiencies."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn


class EfficiencyLoss(nn.Module):
    """Ranks the schedules of each program as measured, with their differences in nats of slowdown.

    The sum of two terms. The cross entropy between the softmax of the measured and that of the predicted
    ln(efficiencies) of a program, its schedules competing (the top-one probabilities of ListNet), is about
    which schedule comes first. The Huber loss of each prediction, both sides less their mean over the
    schedules of the program, is about how much they differ. A failure comes in as a low efficiency; what was
    not measured (NaN) is left out of both terms.

    Args:
        temperature: of both softmaxes, in nats. With 0.2, a schedule that is 20% slower than the best one
            is wanted e times less.
        rank_weight: of the first term; the second has 1.
        delta: errors of more nats than this weigh linearly, so that failures do not rule the fit.

    References:
        ListNet: Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach" (ICML'07).

    Relations:
        `ContrastiveLoss` orders programs by whose best schedule to take; this one orders the schedules.
    """

    def __init__(self, temperature: float = 0.2, rank_weight: float = 0.3, delta: float = 0.5) -> None:
        super().__init__()
        self.temperature = temperature
        self.rank_weight = rank_weight
        self.delta = delta

    def forward(self, predicted: Float[Tensor, "b s"], measured: Float[Tensor, "b s"]) -> Float[Tensor, ""]:
        """In nats. NaN in `measured` marks a pair that was not measured."""
        known = ~measured.isnan()
        if not known.any():
            return predicted.sum() * 0.0
        point = F.huber_loss(
            centred(predicted, known)[known], centred(measured, known)[known], delta=self.delta
        )
        rows = known.any(1)
        unknown = ~known[rows]
        target = (measured[rows] / self.temperature).masked_fill(unknown, float("-inf")).softmax(1)
        logits = (predicted[rows] / self.temperature).masked_fill(unknown, float("-inf"))
        # 0 * -inf is NaN: masked pairs get log-probability 0, their target mass is 0 already.
        log_model = logits.log_softmax(1).masked_fill(unknown, 0.0)
        return point - self.rank_weight * (target * log_model).sum(1).mean()


def centred(values: Float[Tensor, "b s"], known: Bool[Tensor, "b s"]) -> Float[Tensor, "b s"]:
    """Values less the mean of those of their row that are known."""
    count = known.sum(1, keepdim=True).clamp(min=1)
    return values - torch.where(known, values, 0.0).sum(1, keepdim=True) / count
