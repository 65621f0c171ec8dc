"""What a ranking of the schedules of workloads is worth."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from gnnperf.evaluation.metrics import average_peak_score, mean_interval, pairwise_accuracy, top_k_score
from gnnperf.measure.statistics import expected_best
from gnnperf.training.traces.data import FAILED, SchedulePool

PEAK = 8
"""Schedules whose running maximum counts for the average peak score."""


@dataclass(frozen=True)
class Ranking:
    """Of one workload. best_s: its fastest schedule. top1_s, top5_s: the fastest of the 1 or 5 ranked first.
    pairwise: accuracy, None where all schedules tie. average_peak: score, as a share of the best
    throughput."""

    best_s: float
    top1_s: float
    top5_s: float
    pairwise: float | None
    average_peak: float


def rank_pool(pool: SchedulePool, scores: Float64[np.ndarray, " n"]) -> Ranking:
    """What scores, higher is faster, are worth. Who picks a schedule that fails is left with the baseline;
    in pairs it is slower than all that ran."""
    reached, (runtimes, intervals) = _reached(pool), _measured(pool)
    order = np.argsort(-scores, kind="stable")
    best = float(np.nanmin(pool.runtime_s))
    pairwise = pairwise_accuracy(list(-scores), list(runtimes), intervals)
    return Ranking(
        best,
        float(reached[order[0]]),
        float(reached[order[:5]].min()),
        None if math.isnan(pairwise) else pairwise,
        average_peak_score(best / reached[order], PEAK),
    )


def rank_randomly(pool: SchedulePool) -> Ranking:
    """The mean over all orders of the schedules, exactly."""
    reached = np.sort(_reached(pool)).tolist()
    best = float(np.nanmin(pool.runtime_s))
    throughputs = [best / seconds for seconds in reached]
    peaks = [expected_best(throughputs, k) for k in range(1, min(PEAK, len(reached)) + 1)]
    return Ranking(best, expected_best(reached, 1), expected_best(reached, 5), 0.5, float(np.mean(peaks)))


def summary(rankings: Sequence[Ranking]) -> dict[str, float]:
    """top1, top5: `top_k_score` with every workload weighted by 1 / its best runtime, so that all count
    alike; one first pick that is forty times too slow halves the score of forty others. The mean, the median
    and the least over the workloads of best runtime / that of the first pick do not. pairwise, average_peak:
    means over the workloads."""
    weights = [1 / r.best_s for r in rankings]
    pairwise = [r.pairwise for r in rankings if r.pairwise is not None]
    first = np.array([r.best_s / r.top1_s for r in rankings])

    def top(reached_s: Sequence[float]) -> float:
        latencies = [(r.best_s, reached) for r, reached in zip(rankings, reached_s, strict=True)]
        return top_k_score(weights, latencies, [(0.0, 1.0)] * len(rankings), 1)

    return {
        "top1": top([r.top1_s for r in rankings]),
        "top5": top([r.top5_s for r in rankings]),
        "pairwise": float(np.mean(pairwise)) if pairwise else math.nan,
        "average_peak": float(np.mean([r.average_peak for r in rankings])),
        "top1_mean": float(first.mean()),
        "top1_median": float(np.median(first)),
        "top1_least": float(first.min()),
    }


def first_pick_ratio(
    rankings: Sequence[Ranking], others: Sequence[Ranking], kinds: Sequence[str]
) -> tuple[float, float, float]:
    """How much faster the first picks of some rankings are than those of others of the same workloads: the
    geometric mean, and the ends of its 95% interval over kinds, of which all count alike: workloads of one
    kind win or lose together."""
    logs: defaultdict[str, list[float]] = defaultdict(list)
    for own, other, kind in zip(rankings, others, kinds, strict=True):
        logs[kind].append(math.log(other.top1_s / own.top1_s))
    ratio, low, high = np.exp(mean_interval([np.mean(of_kind) for of_kind in logs.values()])).tolist()
    return ratio, low, high


def _reached(pool: SchedulePool) -> Float64[np.ndarray, " n"]:
    """Runtimes, that of the baseline where a schedule failed."""
    reached: Float64[np.ndarray, " n"] = np.where(
        np.isnan(pool.runtime_s), pool.workload.baseline_s, pool.runtime_s
    )
    return reached


def _measured(pool: SchedulePool) -> tuple[Float64[np.ndarray, " n"], list[tuple[float, float]]]:
    """Runtimes and intervals; a failed schedule is slower than all that ran."""
    slowest = float(np.nanmax(pool.runtime_s)) * math.exp(FAILED)
    runtimes = np.where(np.isnan(pool.runtime_s), slowest, pool.runtime_s)
    intervals = np.where(np.isnan(pool.interval_s), slowest, pool.interval_s)
    return runtimes, [(float(low), float(high)) for low, high in intervals]
