"""The same schedules for every nest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gnnperf.evaluation.rankers.kernel_regression import UNKNOWN
from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.training import CorpusNest


class Constant:
    """Three ways to ignore the query, but for its pool.

    "best single": the schedule with the best mean ln efficiency over the reference nests, and no other.
    "fixed order": all schedules, by that mean. "portfolio": at each place the schedule that most improves
    the mean of the best so far, which is what k trials give.
    """

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        column = {schedule: at for at, schedule in enumerate(reference.schedules)}

        @lru_cache(maxsize=2)  # many queries have the pool of all
        def choose(pool: tuple[str, ...], kind: Choice) -> PolicyProposal:
            columns = [column[schedule] for schedule in pool]
            order = kind(reference.log_efficiency[:, columns], reference.log_baseline)
            return PolicyProposal([pool[at] for at in order])

        def best_single(query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
            return PolicyProposal(choose(tuple(pool), fixed_order).schedules[:1])

        return {
            "best single": best_single,
            "fixed order": lambda query, pool: choose(tuple(pool), fixed_order),
            "portfolio": lambda query, pool: choose(tuple(pool), greedy_portfolio),
        }


def promising(reference: Reference, pool: Sequence[str], count: int) -> Sequence[str]:
    """The first of a pool in the fixed order, for those that cannot look at all there are."""
    if len(pool) <= count:
        return pool
    column = {schedule: at for at, schedule in enumerate(reference.schedules)}
    columns = [column[schedule] for schedule in pool]
    order = fixed_order(reference.log_efficiency[:, columns], reference.log_baseline)
    return [pool[at] for at in order[:count]]


Choice = Callable[[NDArray[np.float32], NDArray[np.float32]], Sequence[int]]
"""ln efficiencies f32[nests, schedules] and those of the baseline f32[nests] -> columns in order."""


def fixed_order(log_efficiency: NDArray[np.float32], log_baseline: NDArray[np.float32]) -> Sequence[int]:
    """Columns by falling mean, where `UNKNOWN` stands for what is unmeasured."""
    mean = np.nan_to_num(log_efficiency, nan=UNKNOWN).mean(0)
    return [int(column) for column in np.argsort(-mean, kind="stable")]


def greedy_portfolio(log_efficiency: NDArray[np.float32], log_baseline: NDArray[np.float32]) -> Sequence[int]:
    """Columns, greedily: the next one improves the mean over nests of the best so far the most.

    Greedy choice comes within 1 - 1/e of the best set, as the gain is submodular (Nemhauser et al.,
    "An analysis of approximations for maximizing submodular set functions", 1978). What is unmeasured on a
    nest gains nothing there. When nothing gains anything any more, the fixed order decides.
    """
    reached = np.nan_to_num(log_efficiency, nan=-np.inf)
    best = log_baseline.copy()
    chosen: list[int] = []
    while len(chosen) < reached.shape[1]:
        gain = np.maximum(reached - best[:, None], 0.0).mean(0)
        column = int(gain.argmax())
        if gain[column] <= 0:
            break
        chosen.append(column)
        best = np.maximum(best, reached[:, column])
    return [*dict.fromkeys([*chosen, *fixed_order(log_efficiency, log_baseline)])]
