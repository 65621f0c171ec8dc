"""The retrieval head and its loss."""

from __future__ import annotations

from math import exp, log, nan

import pytest
import torch

from gnnperf.nn import EfficiencyLoss, HeadConfig, RetrievalHead


def test_the_loss_by_hand() -> None:
    """Two schedules, both errors within delta: Huber is half the square."""
    loss = EfficiencyLoss(temperature=1.0, rank_weight=2.0, delta=1.0)
    predicted, measured = torch.tensor([[0.0, -1.0]]), torch.tensor([[0.0, -0.5]])
    point = (0.0 + 0.5 * 0.5**2) / 2
    target = [1 / (1 + exp(-0.5)), exp(-0.5) / (1 + exp(-0.5))]
    model = [-log(1 + exp(-1)), -1 - log(1 + exp(-1))]
    rank = -(target[0] * model[0] + target[1] * model[1])
    assert float(loss(predicted, measured)) == pytest.approx(point + 2.0 * rank)


def test_unmeasured_pairs_and_programs_change_nothing() -> None:
    loss = EfficiencyLoss()
    predicted, measured = torch.tensor([[0.1, -0.3]]), torch.tensor([[-0.2, 0.0]])
    wider = torch.tensor([[0.1, -0.3, 7.0], [5.0, 5.0, 5.0]], requires_grad=True)
    rarer = torch.tensor([[-0.2, 0.0, nan], [nan, nan, nan]])
    found = loss(wider, rarer)
    assert float(found.detach()) == pytest.approx(float(loss(predicted, measured)))
    found.backward()  # type: ignore[no-untyped-call]
    assert wider.grad is not None
    assert wider.grad[0, :2].abs().min() > 0
    assert wider.grad[0, 2] == 0
    assert torch.equal(wider.grad[1], torch.zeros(3))


def test_nothing_measured_is_no_loss() -> None:
    assert float(EfficiencyLoss()(torch.zeros(2, 3), torch.full((2, 3), nan))) == 0.0


def test_the_head_learns_which_schedule_suits_which_program() -> None:
    """A table that no sum of a program's and a schedule's worth can explain."""
    torch.manual_seed(0)
    states, schedules = torch.randn(6, 4), torch.eye(6)
    measured = torch.log(0.2 + 0.8 * torch.eye(6))
    head = RetrievalHead(4, 6, 3, HeadConfig(width=32, dropout=0.0, effect_dropout=0.0))
    pairs = torch.cartesian_prod(torch.arange(6), torch.arange(6))
    effects = torch.randn(36, 3)
    effects[::2, 0] = nan  # absent, for every other pair
    head.fit_scales(schedules, effects)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        judged = head.judgements(states, schedules, effects, pairs[:, 0], pairs[:, 1]).view(2, 6, 6)
        sum(EfficiencyLoss()(scores, measured) for scores in judged).backward()
        optimizer.step()
    head.eval()
    judged = head.judgements(states, schedules, effects, pairs[:, 0], pairs[:, 1]).view(2, 6, 6)
    for found in judged:
        assert found.argmax(1).tolist() == list(range(6))
        assert (found - measured).abs().max() < 0.5
    scores = head(states, schedules, effects, pairs[:, 0], pairs[:, 1]).view(6, 6)
    assert torch.allclose(scores, judged.mean(0))
