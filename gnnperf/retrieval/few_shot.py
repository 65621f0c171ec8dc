"""Runtimes of a tunable kernel's configurations on a GPU that ran a few of them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

from gnnperf.retrieval.configurations import ConfigurationRanking

NOISE = 0.3
"""log2 of how far a runtime is from a guess that is right, typically."""
LEVEL_RUNS = 0.3
"""The level that the network expects counts as so many runs."""
OUTLIER = 0.3
"""log2 of a deviation from which on a run counts for less in the level."""
STEPS = 10


def adapted(
    ranking: ConfigurationRanking, seen: Int64[np.ndarray, " r"], log2_ms: Float64[np.ndarray, " r"]
) -> Float64[np.ndarray, " n"]:
    """log2 of milliseconds of all candidates, from what r of them took.

    Every guess of a ranking, that the GPU is like one that was measured, or as a model says, gets the level
    that fits the runs best, and counts by how likely the runs are under it (Student's t with two degrees of
    freedom). What comes out is their mean: five runs tell more about which GPU this one is like than about
    the level alone.

    Args:
        ranking: of the candidates.
        seen: positions of those that were run; at least one.
        log2_ms: what they took.
    """
    middle = np.median(ranking.guesses, axis=1)
    guesses = ranking.guesses + (np.median(ranking.log2_ms) - middle)[:, None]
    errors = log2_ms - guesses[:, seen]
    level = _location(errors) * len(seen) / (len(seen) + LEVEL_RUNS)
    unlikely = 1.5 * np.log1p(((errors - level[:, None]) / NOISE) ** 2 / 2).sum(axis=1)
    weights = ranking.weights * np.exp(unlikely.min() - unlikely)
    return (weights / weights.sum()) @ (guesses + level[:, None])


def _location(errors: Float64[np.ndarray, "g r"]) -> Float64[np.ndarray, " g"]:
    """Huber's estimate of location in every row."""
    found = np.median(errors, axis=1)
    for _ in range(STEPS):
        weights = np.minimum(1.0, OUTLIER / np.maximum(np.abs(errors - found[:, None]), 1e-9))
        found = (weights * errors).sum(axis=1) / weights.sum(axis=1)
    return found
