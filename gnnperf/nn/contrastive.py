"""Contrastive loss on measured regrets."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

REGRET_CAP = math.log(32.0)
"""The regret of a failure, and the largest regret of anything: a schedule 32x slower than the best
teaches nothing that a failed one does not."""


class ContrastiveLoss(nn.Module):
    """Programs are near when the same schedules speed both up.

    For program i, the target distribution over other programs j is
    `softmax_j(-regret(i, j) / target_temperature)`, the model's is
    `softmax_j(similarity(i, j) / temperature)`; the loss is the cross entropy between the two,
    averaged over the programs i that can teach something: at least two measured partners, at least
    one of them without failure. Pairs that were not measured (NaN) are left out of both
    distributions: nothing pulls them together, nothing pushes them apart. Ties come in as regret 0,
    failures as `REGRET_CAP`.

    Args:
        temperature: of the similarities. Cosines lie in [-1, 1], so 0.2 allows odds of e^10.
        target_temperature: of the regrets, in nats of slowdown. With 0.1, a partner whose schedule
            runs 10% slower than the best gets about 0.4 of the mass of a tie.

    References:
        Soft-target InfoNCE: van den Oord et al., "Representation Learning with Contrastive
        Predictive Coding" (arXiv:1807.03748), with the one-hot target replaced by the distribution
        that measured regrets imply.

    Relations:
        With target_temperature -> 0 and a single tie per row it is InfoNCE; with several ties it is
        SupCon (Khosla et al., NeurIPS'20). It needs no margin, unlike a triplet loss, and uses how
        much worse a partner is, not only that it is worse.
    """

    def __init__(self, temperature: float = 0.2, target_temperature: float = 0.1) -> None:
        super().__init__()
        self.temperature = temperature
        self.target_temperature = target_temperature

    def forward(self, similarity: Float[Tensor, "i j"], regret: Float[Tensor, "i j"]) -> Float[Tensor, ""]:
        """Cross entropy in nats. NaN in `regret` marks a pair that was not measured (or i = j)."""
        target, rows = self._target(regret)
        logits = (similarity / self.temperature).masked_fill(regret.isnan(), float("-inf"))
        # 0 * -inf is NaN: masked pairs get log-probability 0, their target mass is 0 already.
        log_model = logits[rows].log_softmax(1).masked_fill(regret[rows].isnan(), 0.0)
        if not rows.any():
            return similarity.sum() * 0.0
        return -(target[rows] * log_model).sum(1).mean()

    def entropy(self, regret: Float[Tensor, "i j"]) -> Float[Tensor, ""]:
        """The least value the loss can take: the mean entropy of the target distributions, in nats."""
        target, rows = self._target(regret)
        if not rows.any():
            return torch.zeros(())
        return torch.special.entr(target[rows]).sum(1).mean()

    def _target(self, regret: Tensor) -> tuple[Tensor, Tensor]:
        """Target distributions, and which rows have one."""
        measured = ~regret.isnan()
        works = measured & (regret < REGRET_CAP)
        rows = (measured.sum(1) >= 2) & works.any(1)
        logits = (-regret / self.target_temperature).masked_fill(~measured, float("-inf"))
        return logits.softmax(1), rows
