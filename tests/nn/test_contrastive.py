from __future__ import annotations

import math

import pytest
import torch

from gnnperf.nn import REGRET_CAP, ContrastiveLoss

NAN = float("nan")


def test_loss_worked_by_hand() -> None:
    """One anchor, a tie and a partner ln(3)*0.1 worse: targets 3/4 and 1/4; logits 2 and 0."""
    loss = ContrastiveLoss(temperature=0.5, target_temperature=0.1)
    regret = torch.tensor([[NAN, 0.0, 0.1 * math.log(3.0)]])
    similarity = torch.tensor([[1.0, 1.0, 0.0]])
    normaliser = math.log(math.exp(2.0) + 1.0)
    expected = 0.75 * (normaliser - 2.0) + 0.25 * normaliser
    assert loss(similarity, regret).item() == pytest.approx(expected, rel=1e-5)
    entropy = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert loss.entropy(regret).item() == pytest.approx(entropy, rel=1e-5)


def test_the_loss_reaches_its_entropy_where_similarities_match_the_targets() -> None:
    loss = ContrastiveLoss(temperature=1.0, target_temperature=1.0)
    regret = torch.tensor([[NAN, 0.0, 0.4, 1.3], [0.2, NAN, 0.0, 0.7]])
    assert loss(-regret.nan_to_num(), regret).item() == pytest.approx(loss.entropy(regret).item(), rel=1e-5)


def test_unmeasured_pairs_have_no_influence_and_no_gradient() -> None:
    loss = ContrastiveLoss()
    similarity = torch.rand(3, 3, requires_grad=True)
    regret = torch.tensor([[NAN, 0.0, 1.0], [0.0, NAN, 0.5], [NAN, NAN, NAN]])
    loss(similarity, regret).backward()
    assert similarity.grad is not None
    assert similarity.grad.isfinite().all()
    assert (similarity.grad != 0).tolist() == (~regret.isnan()).tolist()


@pytest.mark.parametrize(
    "row",
    [[NAN, NAN, NAN], [NAN, 0.0, NAN], [NAN, REGRET_CAP, REGRET_CAP]],
    ids=["nothing measured", "one partner", "only failures"],
)
def test_anchors_that_cannot_teach_are_left_out(row: list[float]) -> None:
    loss = ContrastiveLoss()
    similarity = torch.rand(2, 3, requires_grad=True)
    teaching = [0.0, NAN, 0.3]
    both = loss(similarity, torch.tensor([teaching, row]))
    torch.testing.assert_close(both, loss(similarity[:1], torch.tensor([teaching])))
    nothing = loss(similarity[1:], torch.tensor([row]))
    nothing.backward()
    assert nothing.item() == 0.0
    assert loss.entropy(torch.tensor([row])).item() == 0.0


def test_a_failure_gets_next_to_no_target_mass() -> None:
    loss = ContrastiveLoss(temperature=0.1)
    regret = torch.tensor([[NAN, 0.0, REGRET_CAP]])
    assert loss(torch.tensor([[0.0, 1.0, -1.0]]), regret).item() < 1e-6
