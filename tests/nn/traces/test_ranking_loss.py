"""The ranking loss against a case worked by hand."""

from __future__ import annotations

from math import exp, log, nan

import pytest
import torch
from torch import Tensor

from gnnperf.nn.traces.ranking_loss import RankingLoss


def loss_of(scores: list[float], truth: list[float], spread: float = 0.0) -> Tensor:
    known = torch.tensor([truth])
    loss: Tensor = RankingLoss(temperature=1.0, regression=2.0)(
        torch.tensor([scores]), known, known - spread, known + spread
    )
    return loss


def test_two_schedules_by_hand() -> None:
    """Scores 0 and -1 of schedules of which the second takes twice as long."""
    truth = [0.0, log(0.5)]
    target = [2 / 3, 1 / 3]
    log_total = log(1 + exp(-1))
    listwise = -(target[0] * (0 - log_total) + target[1] * (-1 - log_total))
    pairs = log(1 + exp(-1))  # the only pair that is no tie has all the weight
    error = (1 - log(2)) / 2  # of both, with opposite signs
    expected = listwise + pairs + 2.0 * error**2 / 2
    assert float(loss_of([0.0, -1.0], truth)) == pytest.approx(expected, rel=1e-5)


def test_ties_are_no_pairs() -> None:
    """The more two schedules that tie differ in score, the pairs are silent about it."""
    apart, tied = loss_of([0.0, -1.0], [0.0, -0.1]), loss_of([0.0, -1.0], [0.0, -0.1], spread=0.1)
    assert float(apart - tied) == pytest.approx(log(1 + exp(-1)), rel=1e-4)


def test_where_there_is_no_schedule_nothing_counts() -> None:
    with_gap = loss_of([0.0, -1.0, 50.0], [0.0, -0.7, nan])
    assert float(with_gap) == pytest.approx(float(loss_of([0.0, -1.0], [0.0, -0.7])), rel=1e-5)


def test_the_right_order_costs_less() -> None:
    truth = [0.0, -1.0, -2.0]
    assert float(loss_of([2.0, 1.0, 0.0], truth)) < float(loss_of([0.0, 1.0, 2.0], truth))
