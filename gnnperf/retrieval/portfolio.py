"""In which order to measure schedules, when it is the best of the first few that counts."""

from __future__ import annotations

from collections.abc import Mapping

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
    predicted: Float[NDArray, " s"],
    features: Float[NDArray, "s r"],
    count: int,
    measured: Mapping[int, float] | None = None,
) -> Int[NDArray, " n"]:
    """Positions of `count` schedules (or all), in the order to measure them.

    Predictions err, and they err alike for like schedules: the second candidate is worth most where it
    is good although the first one is not. So each is chosen to raise the expected best of those chosen,
    under errors drawn from a Gaussian process over the schedules' features.

    Args:
        predicted: ln efficiencies.
        features: rows that are near for like schedules; columns are standardised here.
        count: schedules wanted.
        measured: ln efficiencies of schedules that ran already, by position: the errors that they show are
            expected of like schedules too, and only what beats them counts.

    References:
        The greedy multi-points expected improvement of Ginsbourger et al., "Kriging Is Well-Suited to
        Parallelize Optimization" (2010).
    """
    if not len(predicted):
        return np.zeros(0, dtype=np.int64)
    covariance = _covariance(features)
    errors = _errors(covariance)
    if measured:
        outcomes = predicted[:, None] + _given(errors, covariance, predicted, measured)
        best = outcomes[list(measured)].max(0)
    else:
        outcomes = np.minimum(predicted[:, None] + errors, predicted.max())  # nothing beats the best
        best = np.full(outcomes.shape[1], -np.inf)
    left = np.setdiff1d(np.arange(len(predicted)), list(measured or ()))
    order: list[int] = []
    for _ in range(min(count, len(left))):
        expected = np.maximum(best, outcomes[left]).mean(1)
        # Where a further candidate gains nothing, the likelier one still goes first.
        chosen = int(np.lexsort((left, -predicted[left], -np.round(expected, 9)))[0])
        order.append(int(left[chosen]))
        best = np.maximum(best, outcomes[left[chosen]])
        left = np.delete(left, chosen)
    return np.array(order, dtype=np.int64)


def _covariance(features: NDArray) -> NDArray:
    """f64[s, s], of the errors, in units of DEVIATION squared."""
    spread = features.std(0)
    rows = (features - features.mean(0)) / np.where(spread > 0, spread, 1.0)
    distances = ((rows[:, None] - rows[None]) ** 2).mean(-1)
    found: NDArray = (1.0 - OWN_SHARE) * np.exp(-distances / LENGTH_SCALE) + OWN_SHARE * np.eye(len(rows))
    return found


def _errors(covariance: NDArray) -> NDArray:
    """f64[s, 2 SCENARIOS]: the same for the same features, whenever it is asked."""
    draws = np.random.default_rng(0).standard_normal((len(covariance), SCENARIOS))
    errors = DEVIATION * np.linalg.cholesky(covariance + 1e-9 * np.eye(len(covariance))) @ draws
    return np.concatenate([errors, -errors], axis=1)


def _given(
    errors: NDArray, covariance: NDArray, predicted: NDArray, measured: Mapping[int, float]
) -> NDArray:
    """The scenarios once some errors are known (Matheron's rule). What all predictions are off by alike is no
    error: it is the level that fits the measured best."""
    seen = np.array(list(measured))
    off = np.array(list(measured.values())) - predicted[seen]
    solved = np.linalg.inv(covariance[np.ix_(seen, seen)] + 1e-9 * np.eye(len(seen)))
    level = (solved @ off).sum() / solved.sum()
    return errors + covariance[:, seen] @ solved @ ((off - level)[:, None] - errors[seen])
