"""What a set of embeddings is worth for transfer, replayed from measured pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def transfer_regrets(
    similarity: NDArray[np.float32], regret: NDArray[np.float32], k: int
) -> NDArray[np.float32]:
    """Regret of each query after trying the schedules of its k nearest references.

    Args:
        similarity: f32[q, r] of queries to references.
        regret: f32[q, r], NaN where the pair was not measured; such references are passed over, as
            nothing is known of what they would have given.
        k: schedules tried; the best of them counts.

    Returns:
        f32[m], one value for each of the queries that have a measured reference.
    """
    replayable = ~np.isnan(regret).all(axis=1)
    near = np.where(np.isnan(regret), -np.inf, similarity)[replayable]
    order = np.argsort(-near, axis=1, kind="stable")[:, :k]
    tried = np.take_along_axis(regret[replayable], order, axis=1)
    return np.asarray(np.nanmin(tried, axis=1) if tried.size else tried.reshape(-1), dtype=np.float32)


def transfer_regret(similarity: NDArray[np.float32], regret: NDArray[np.float32], k: int) -> float:
    """Mean of `transfer_regrets`, in nats; NaN when no query can be replayed."""
    regrets = transfer_regrets(similarity, regret, k)
    return float(regrets.mean()) if regrets.size else float("nan")


def random_regret(regret: NDArray[np.float32]) -> float:
    """Expected transfer regret@1 of a reference drawn at random among the measured ones."""
    rows = regret[~np.isnan(regret).all(axis=1)]
    return float(np.nanmean(rows, axis=1).mean()) if rows.size else float("nan")


def oracle_regret(regret: NDArray[np.float32]) -> float:
    """Transfer regret@1 of the best reference there is: what no embedding can beat."""
    return transfer_regret(-np.nan_to_num(regret, nan=np.inf), regret, 1)


def best_of_k(score: NDArray[np.float32], log_efficiency: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """Efficiency of the best of the k recipes with the highest scores, among those measured.

    Args:
        score: f32[q, s] of s recipes for q nests.
        log_efficiency: f32[q, s], NaN where unmeasured.
        k: recipes tried.

    Returns:
        f32[m] in (0, 1], one value for each of the nests on which something was measured.
    """
    regrets = transfer_regrets(score, -log_efficiency, k)
    return np.exp(-regrets)
