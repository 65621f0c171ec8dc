"""What efficiencies could be where nobody measured: guesses, each with errors that are alike for like
configurations, so that the first few to try are not one configuration in five disguises."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

DEVIATION = 1.0
"""Of log2 of a runtime from what is guessed for a kernel that was never measured."""
LENGTH_SCALE = 0.5
"""Mean squared distance of standardised features at which two errors are hardly alike any more."""
OWN_SHARE = 0.1
"""Part of an error's variance that not even a like configuration shares."""
DRAWS = 64
"""Errors drawn, each with its mirror image, so that no configuration is favoured by the draw."""
SHORTLIST = 400
"""Of every guess, the best that are considered."""


def shortlist(guesses: Float64[np.ndarray, "g n"]) -> Int64[np.ndarray, " s"]:
    """Positions of the best by each guess."""
    return np.unique(np.argsort(guesses, axis=1, kind="stable")[:, :SHORTLIST])


def scenarios(
    guesses: Float64[np.ndarray, "g s"],
    weights: Float64[np.ndarray, " g"],
    features: Float64[np.ndarray, "s f"],
) -> tuple[Float64[np.ndarray, "d s"], Float64[np.ndarray, " d"]]:
    """Efficiencies of s configurations in each of d scenarios, and how likely each is.

    guesses: log2 of the runtime over the best, with the weight of each. features: rows that are near for
    like configurations; columns are standardised here.
    """
    spread = features.std(axis=0)
    rows = ((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
    square = (rows**2).sum(axis=1)
    distance = (square[:, None] + square[None] - 2 * rows @ rows.T) / max(rows.shape[1], 1)
    alike = (1.0 - OWN_SHARE) * np.exp(-distance / LENGTH_SCALE) + (OWN_SHARE + 1e-6) * np.eye(len(rows))
    draws = np.random.default_rng(0).standard_normal((len(rows), DRAWS))
    errors = (DEVIATION * np.linalg.cholesky(alike) @ draws).T
    runtime = (guesses[:, None] + np.concatenate([errors, -errors])[None]).reshape(-1, len(rows))
    likely = np.repeat(weights, 2 * DRAWS) / (2 * DRAWS)
    return np.exp2(runtime.min(axis=1, keepdims=True) - runtime), likely
