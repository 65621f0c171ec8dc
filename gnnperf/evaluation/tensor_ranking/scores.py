"""What a ranking of the schedules of workloads is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from gnnperf.evaluation.metrics import average_peak_score, pairwise_accuracy, top_k_score
from gnnperf.training.tensor.data import FAILED, Pool

PEAK = 8
"""Schedules whose running maximum counts for the average peak score."""


@dataclass(frozen=True)
class Ranking:
    """Of one workload. best_s: its fastest schedule. reached_s: the fastest of the k first, by k. pairwise:
    accuracy, NaN where all schedules tie. peak: average peak score, as a share of the best throughput."""

    best_s: float
    reached_s: dict[int, float]
    pairwise: float
    peak: float


def rank_pool(pool: Pool, scores: Float64[np.ndarray, " n"]) -> Ranking:
    """What scores, higher is faster, are worth. Failed schedules count as in training."""
    runtimes, intervals = _measured(pool)
    order = np.argsort(-scores, kind="stable")
    best = float(runtimes.min())
    reached = {k: float(runtimes[order[:k]].min()) for k in (1, 5)}
    pairwise = pairwise_accuracy(list(-scores), list(runtimes), intervals)
    return Ranking(best, reached, pairwise, average_peak_score(best / runtimes[order], PEAK))


def rank_randomly(pool: Pool) -> Ranking:
    """The mean over all orders of the schedules, exactly."""
    runtimes, _ = _measured(pool)
    best = float(runtimes.min())
    reached = {k: expected_best(runtimes, k) for k in (1, 5)}
    peaks = [-expected_best(-best / runtimes, k) for k in range(1, min(PEAK, len(runtimes)) + 1)]
    return Ranking(best, reached, 0.5, float(np.mean(peaks)))


def expected_best(values: Float64[np.ndarray, " n"], k: int) -> float:
    """The mean of the least of k values drawn without replacement: of n in ascending order, the i-th (from 0)
    is the least of the draw with probability C(n - 1 - i, k - 1) / C(n, k)."""
    ordered, n = np.sort(values), len(values)
    k = min(k, n)
    chance = [math.comb(n - 1 - i, k - 1) / math.comb(n, k) for i in range(n)]
    return float(np.dot(chance, ordered))


def summary(rankings: Sequence[Ranking]) -> dict[str, float]:
    """top1, top5: `top_k_score` with every workload weighted by 1 / its best runtime, so that all count
    alike. pairwise, average_peak: means over the workloads."""
    weights = [1 / r.best_s for r in rankings]
    pairwise = [r.pairwise for r in rankings if not math.isnan(r.pairwise)]
    top = {
        f"top{k}": top_k_score(
            weights, [(r.best_s, r.reached_s[k]) for r in rankings], [(0.0, 1.0)] * len(rankings), 1
        )
        for k in (1, 5)
    }
    return {
        **top,
        "pairwise": float(np.mean(pairwise)) if pairwise else math.nan,
        "average_peak": float(np.mean([r.peak for r in rankings])),
    }


def _measured(pool: Pool) -> tuple[Float64[np.ndarray, " n"], list[tuple[float, float]]]:
    """Runtimes and intervals; a failed schedule is slower than all that ran."""
    slowest = float(np.nanmax(pool.runtime_s)) * math.exp(FAILED)
    runtimes = np.where(np.isnan(pool.runtime_s), slowest, pool.runtime_s)
    intervals = np.where(np.isnan(pool.interval_s), slowest, pool.interval_s)
    return runtimes, [(float(low), float(high)) for low, high in intervals]
