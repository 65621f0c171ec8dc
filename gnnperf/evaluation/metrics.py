"""Every metric of a benchmark, one definition each (design 9).

Runtimes that schedules are compared by are `Relative`: shares of the baseline that was timed interleaved
with them. Two whose intervals overlap are a tie, and a tie with the best is as good as the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gnnperf.measure import is_tie
from gnnperf.measure.statistics import Interval, expected_best
from gnnperf.training.regret import Relative, regret_of

__all__ = [
    "average_peak_score",
    "coverage",
    "expected_search_reduction",
    "expected_transfer_regret",
    "geometric_mean",
    "mape",
    "mdape",
    "mean_interval",
    "pairwise_accuracy",
    "per_group",
    "search_reduction",
    "top_k_score",
    "transfer_efficiency",
    "transfer_regret",
]

RESAMPLES = 10_000
KEPT = Relative(1.0, 1.0, 1.0)
"""The baseline, candidate 0 of every transfer: what is reached when nothing beats it."""


def mean_interval(values: ArrayLike) -> tuple[float, float, float]:
    """Mean, and the ends of its 95% interval: quantiles of the means of samples with replacement (percentile
    bootstrap). Values: one for each independent group, such as a family."""
    found = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(len(found), size=(RESAMPLES, len(found)))
    low, high = np.quantile(found[drawn].mean(1), (0.025, 0.975))
    return float(found.mean()), float(low), float(high)


def geometric_mean(values: ArrayLike) -> float:
    """exp(mean(ln(values))); NaN of nothing."""
    logs = np.log(np.asarray(values, dtype=np.float64))
    return float(np.exp(logs.mean())) if logs.size else math.nan


# --------------------------------------------------------------------------- transfer


def transfer_regret(tried: Sequence[Relative | None], best: Relative, k: int) -> float:
    """transfer_regret@k: ln(best runtime of the baseline and the first k candidates / best known), in nats.

    Args:
        tried: candidates in the order they are measured; None failed.
        best: the best known runtime of the nest, the baseline among them.
        k: candidates measured.
    """
    return min(regret_of(achieved, best) for achieved in (KEPT, *tried[:k]) if achieved is not None)


def transfer_efficiency(tried: Sequence[Relative | None], best: Relative, k: int) -> float:
    """transfer_efficiency@k: best known runtime / best runtime of the first k candidates, in (0, 1]."""
    return math.exp(-transfer_regret(tried, best, k))


def expected_transfer_regret(
    tried: Sequence[Relative | None],
    best: Relative,
    k: int,
    value: Callable[[float], float] = lambda regret: regret,
) -> float:
    """The mean of value(transfer_regret@k) over all orders of the candidates: what a random order is worth.

    Exact: see `expected_best`.
    """
    if not tried or not k:
        return value(transfer_regret([], best, 0))
    regrets = sorted(transfer_regret([achieved], best, 1) for achieved in tried)
    return expected_best([value(regret) for regret in regrets], k)


# --------------------------------------------------------------------------- search


def search_reduction(tried: Sequence[Relative | None], target: Relative) -> float:
    """Trials that a search needs to match `target`, what k transferred candidates reached.

    A tie matches. 0 where the baseline does, the first trial is 1; infinite where the recorded search never
    got there: it needs more than `len(tried)`.
    """
    return next((at for at, achieved in enumerate((KEPT, *tried)) if _matches(achieved, target)), math.inf)


def expected_search_reduction(tried: Sequence[Relative | None], target: Relative) -> float:
    """The mean of `search_reduction` over all orders of n trials: what random search needs.

    Exact: the first of m hits among n trials in random order is expected at (n + 1) / (m + 1), the mean of
    the negative hypergeometric distribution.
    """
    if _matches(KEPT, target):
        return 0.0
    hits = sum(_matches(achieved, target) for achieved in tried)
    return (len(tried) + 1) / (hits + 1) if hits else math.inf


def _matches(achieved: Relative | None, target: Relative) -> bool:
    return achieved is not None and (achieved.share <= target.share or achieved.ties(target))


# --------------------------------------------------------------------------- predictions


def top_k_score(
    weights: Sequence[float],
    latencies: Sequence[Sequence[float]],
    scores: Sequence[Sequence[float]],
    k: int,
) -> float:
    """top_k_score of TLP: sum_t w_t * min_latency_t / sum_t w_t * min(latency of the k best-predicted).

    Args:
        weights: of the tasks: how often each occurs.
        latencies: per task, of its schedules, in seconds.
        scores: per task, predicted for the same schedules; higher is faster.
        k: schedules measured per task.

    Source: Zhai et al., "TLP: A Deep Learning-based Cost Model for Tensor Program Tuning" (ASPLOS'23).
    """
    reached = 0.0
    for weight, measured, predicted in zip(weights, latencies, scores, strict=True):
        order = np.argsort(-np.asarray(predicted), kind="stable")[:k]
        reached += weight * min(measured[i] for i in order)
    return sum(w * min(measured) for w, measured in zip(weights, latencies, strict=True)) / reached


def average_peak_score(throughputs: ArrayLike, k: int) -> float:
    """average_peak_score@k: mean over i <= k of the best throughput among the first i, in the unit given.

    Source: Zheng et al., "TenSet: A Large-scale Program Performance Dataset" (NeurIPS'21).
    """
    return float(np.maximum.accumulate(np.asarray(throughputs, dtype=np.float64)[:k]).mean())


def pairwise_accuracy(
    predicted: Sequence[float], runtimes: Sequence[float], intervals: Sequence[Interval]
) -> float:
    """Share of pairs that are ordered as measured. Pairs whose intervals overlap are left out.

    Args:
        predicted: runtimes, in any unit; equal predictions order nothing.
        runtimes: measured medians, in seconds.
        intervals: of these medians, in seconds.

    Returns:
        In [0, 1]; NaN where every pair is a tie.
    """
    right = pairs = 0
    for i in range(len(runtimes)):
        for j in range(i):
            if not is_tie(intervals[i], intervals[j]):
                pairs += 1
                right += (predicted[i] - predicted[j]) * (runtimes[i] - runtimes[j]) > 0
    return right / pairs if pairs else math.nan


def mape(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Mean absolute percentage error of latencies, in percent."""
    return float(_percentage_errors(predicted, measured).mean())


def mdape(predicted: ArrayLike, measured: ArrayLike) -> float:
    """Median absolute percentage error of latencies, in percent."""
    return float(np.median(_percentage_errors(predicted, measured)))


def _percentage_errors(predicted: ArrayLike, measured: ArrayLike) -> NDArray[np.float64]:
    truth = np.asarray(measured, dtype=np.float64)
    return 100.0 * np.abs(np.asarray(predicted, dtype=np.float64) - truth) / truth


def coverage(measured: ArrayLike, low: ArrayLike, high: ArrayLike) -> float:
    """How often predicted intervals [low, high] hold what was measured, as a share; ends belong to them."""
    values = np.asarray(measured)
    return float(np.mean((np.asarray(low) <= values) & (values <= np.asarray(high))))


def per_group(
    metric: Callable[..., float], groups: Sequence[str], *columns: Sequence[float]
) -> Mapping[str, float]:
    """A metric of each group of rows: errors are given per device and per family, never pooled only."""
    names = np.asarray(groups)
    arrays = [np.asarray(column) for column in columns]
    return {str(name): metric(*(a[names == name] for a in arrays)) for name in np.unique(names)}
