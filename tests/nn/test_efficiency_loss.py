"""The loss of the head that ranks schedules."""

from __future__ import annotations

from math import exp, log, nan

import pytest
import torch

from gnnperf.nn import EfficiencyLoss


def test_the_loss_by_hand() -> None:
    """Two schedules; less their means, they are 0.5 and -0.5, measured 0.25 and -0.25: errors within delta,
    of which Huber is half the square."""
    loss = EfficiencyLoss(temperature=1.0, rank_weight=2.0, delta=1.0)
    predicted, measured = torch.tensor([[0.0, -1.0]]), torch.tensor([[0.0, -0.5]])
    point = 0.5 * 0.25**2
    target = [1 / (1 + exp(-0.5)), exp(-0.5) / (1 + exp(-0.5))]
    model = [-log(1 + exp(-1)), -1 - log(1 + exp(-1))]
    rank = -(target[0] * model[0] + target[1] * model[1])
    assert float(loss(predicted, measured)) == pytest.approx(point + 2.0 * rank)


def test_large_errors_weigh_linearly() -> None:
    """Of 2 nats each, beyond delta = 0.5."""
    loss = EfficiencyLoss(rank_weight=0.0, delta=0.5)
    found = loss(torch.tensor([[2.0, -2.0]]), torch.tensor([[0.0, 0.0]]))
    assert float(found) == pytest.approx(0.5 * (2.0 - 0.25))


@pytest.mark.parametrize("shift", [-7.0, 1000.0])
def test_only_differences_between_schedules_of_a_program_count(shift: float) -> None:
    loss = EfficiencyLoss()
    predicted = torch.tensor([[0.1, -0.3, 0.2], [0.0, 1.0, nan]]).nan_to_num()
    measured = torch.tensor([[-0.2, 0.0, -1.0], [0.0, -0.5, nan]])
    shifted = predicted + torch.tensor([[shift], [0.0]])
    assert float(loss(shifted, measured)) == pytest.approx(float(loss(predicted, measured)), rel=1e-3)
    assert float(loss(predicted, measured + shift)) == pytest.approx(
        float(loss(predicted, measured)), rel=1e-3
    )


def test_what_is_predicted_as_measured_costs_no_more_than_its_entropy() -> None:
    loss = EfficiencyLoss(temperature=0.2, rank_weight=0.3)
    measured = torch.log(torch.tensor([[1.0, 0.5, 0.9]]))
    entropy = torch.special.entr((measured / 0.2).softmax(1)).sum()
    assert float(loss(measured - 3.0, measured)) == pytest.approx(0.3 * float(entropy), rel=1e-4)


def test_unmeasured_pairs_and_programs_change_nothing() -> None:
    loss = EfficiencyLoss()
    predicted, measured = torch.tensor([[0.1, -0.3]]), torch.tensor([[-0.2, 0.0]])
    wider = torch.tensor([[0.1, -0.3, 7.0], [5.0, 5.0, 5.0]], requires_grad=True)
    rarer = torch.tensor([[-0.2, 0.0, nan], [nan, nan, nan]])
    found = loss(wider, rarer)
    assert float(found.detach()) == pytest.approx(float(loss(predicted, measured)))
    found.backward()
    assert wider.grad is not None
    assert wider.grad[0, :2].abs().min() > 0
    assert wider.grad[0, 2] == 0
    assert torch.equal(wider.grad[1], torch.zeros(3))


def test_places_without_a_trial_may_be_nan() -> None:
    """As `gnnperf.training.trials.by_nest` fills them, on both sides."""
    loss = EfficiencyLoss()
    predicted = torch.tensor([[0.1, -0.3, nan]], requires_grad=True)
    measured = torch.tensor([[-0.2, 0.0, nan]])
    found = loss(predicted, measured)
    assert float(found.detach()) == pytest.approx(float(loss(predicted[:, :2], measured[:, :2]).detach()))
    found.backward()
    assert predicted.grad is not None
    assert predicted.grad[0, :2].isfinite().all()


def test_nothing_measured_is_no_loss() -> None:
    assert float(EfficiencyLoss()(torch.zeros(2, 3), torch.full((2, 3), nan))) == 0.0
