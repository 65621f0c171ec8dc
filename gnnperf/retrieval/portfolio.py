"""In which order to measure schedules, when it is the best of the first few that counts."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

DEVIATION = 0.3
"""Of a predicted ln efficiency from the measured one, in nats."""
LENGTH_SCALE = 0.5
"""Mean squared distance of standardised features at which two errors are hardly alike any more."""
OWN_SHARE = 0.1
"""Part of an error's variance that not even a like schedule shares."""
SCENARIOS = 256
"""Sampled, each with its mirror image, so that no schedule is favoured by the draw."""


def portfolio(
    predicted: Float[NDArray, " s"], features: Float[NDArray, "s r"], count: int
) -> Int[NDArray, " n"]:
    """Positions of `count` schedules (or all), in the order to measure them.

    Predictions err, and they err alike for like schedules: the second candidate is worth most where it
    is good although the first one is not. So each is chosen to raise the expected best of those chosen,
    under errors drawn from a Gaussian process over the schedules' features.

    Args:
        predicted: ln efficiencies.
        features: rows that are near for like schedules; columns are standardised here.
        count: schedules wanted.

    References:
        The greedy multi-points expected improvement of Ginsbourger et al., "Kriging Is Well-Suited to
        Parallelize Optimization" (2010).
    """
    if not len(predicted):
        return np.zeros(0, dtype=np.int64)
    errors = _errors(features)
    outcomes = np.minimum(predicted[:, None] - predicted.max() + errors, 0.0)  # nothing beats the best
    best = np.full(outcomes.shape[1], -np.inf)
    left = np.arange(len(predicted))
    order: list[int] = []
    for _ in range(min(count, len(predicted))):
        expected = np.maximum(best, outcomes[left]).mean(1)
        # Where a further candidate gains nothing, the likelier one still goes first.
        chosen = int(np.lexsort((left, -predicted[left], -np.round(expected, 9)))[0])
        order.append(int(left[chosen]))
        best = np.maximum(best, outcomes[left[chosen]])
        left = np.delete(left, chosen)
    return np.array(order, dtype=np.int64)


def _errors(features: NDArray) -> NDArray:
    """f64[s, 2 SCENARIOS]: the same for the same features, whenever it is asked."""
    spread = features.std(0)
    rows = (features - features.mean(0)) / np.where(spread > 0, spread, 1.0)
    distances = ((rows[:, None] - rows[None]) ** 2).mean(-1)
    alike = (1.0 - OWN_SHARE) * np.exp(-distances / LENGTH_SCALE) + OWN_SHARE * np.eye(len(rows))
    draws = np.random.default_rng(0).standard_normal((len(rows), SCENARIOS))
    errors = DEVIATION * np.linalg.cholesky(alike + 1e-9 * np.eye(len(rows))) @ draws
    return np.concatenate([errors, -errors], axis=1)
