"""The loss that orders all partners by regret, against SciPy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import rankdata

from gnnperf.nn import RankCorrelationLoss

NAN = float("nan")


def test_a_row_by_hand() -> None:
    """Ranks of 0, 0, 1, 2 are 0.5, 0.5, 2, 3 (from 0): centred -1, -1, .5, 1.5, of squares 4.5. Similarities
    1, 0, 0, -1 are centred already, of squares 2. Their product is -1 - 1.5."""
    similarity, regret = torch.tensor([[1.0, 0.0, 0.0, -1.0]]), torch.tensor([[0.0, 0.0, 1.0, 2.0]])
    assert RankCorrelationLoss()(similarity, regret).item() == pytest.approx(1 - 2.5 / 3.0)


@pytest.mark.parametrize(("sign", "expected"), [(-1.0, 0.0), (1.0, 2.0)])
def test_the_order_that_was_measured_and_its_reverse(sign: float, expected: float) -> None:
    regret = torch.tensor([[0.1, 0.4, 0.2, 0.9, 0.7]])
    ranks = regret.argsort().argsort().float()
    assert RankCorrelationLoss()(sign * ranks, regret).item() == pytest.approx(expected, abs=1e-6)


def test_as_scipy_ranks_with_ties_and_gaps() -> None:
    rng = np.random.default_rng(0)
    similarity = rng.normal(size=(12, 12)).astype(np.float32)
    regret = rng.integers(0, 4, (12, 12)).astype(np.float32)
    regret[rng.random((12, 12)) < 0.3] = np.nan
    np.fill_diagonal(regret, np.nan)
    rows = []
    for near, lost in zip(similarity, regret, strict=True):
        known = ~np.isnan(lost)
        rows.append(np.corrcoef(near[known], rankdata(lost[known]))[0, 1])
    loss = RankCorrelationLoss()(torch.from_numpy(similarity), torch.from_numpy(regret))
    assert loss.item() == pytest.approx(1 + np.mean(rows), abs=1e-5)


def test_rows_that_say_nothing_are_left_out() -> None:
    similarity = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    few, alike = [0.0, 1.0, NAN, NAN], [1.0, 1.0, 1.0, 1.0]
    known = torch.tensor([few, alike, [0.0, 1.0, 2.0, 3.0]])
    loss = RankCorrelationLoss()(similarity, known)
    loss.backward()
    assert similarity.grad is not None
    assert similarity.grad[:2].abs().max() == 0
    assert similarity.grad[2].abs().max() > 0
    nothing = RankCorrelationLoss()(similarity, torch.tensor([few, alike, few]))
    assert nothing.item() == 0


def test_gradients_draw_programs_of_little_regret_near() -> None:
    regret = torch.rand(8, 8, generator=torch.Generator().manual_seed(1)).masked_fill(torch.eye(8) > 0, NAN)
    learned = torch.nn.Parameter(torch.randn(8, 8, generator=torch.Generator().manual_seed(2)))
    optimizer, loss = torch.optim.Adam([learned], lr=0.05), RankCorrelationLoss()
    for _ in range(200):
        optimizer.zero_grad()
        loss(learned, regret).backward()
        optimizer.step()
    assert loss(learned, regret).item() < 0.1
