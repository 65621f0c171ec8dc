"""From answers to a table: how good each policy's first k candidates are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gnnperf.evaluation.metrics import (
    expected_transfer_regret,
    geometric_mean,
    per_group,
    transfer_regret,
)
from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.replay import Answer
from gnnperf.training import Corpus
from gnnperf.training.regret import Relative

ALL = "all"
"""Names the subset of all nests."""
WITHIN = (0.05, 0.10)
"""Shares of the best known speed that may be missed: what counts as near the best."""


@dataclass(frozen=True)
class Scores:
    """What one policy reached with k candidates: f64[seeds, nests].

    families: of the nests. regret: transfer_regret@k, in nats. within: per share of `WITHIN`, the
    probability of missing at most that share of the best known speed.
    """

    families: Sequence[str]
    regret: NDArray[np.float64]
    within: Mapping[float, NDArray[np.float64]]

    @staticmethod
    def of(corpus: Corpus, answers: Sequence[Answer], k: int) -> Scores:
        """Scores of one row of the table; every nest of the corpus was answered once per seed."""
        seeds = sorted({answer.seed for answer in answers})
        regret = np.full((len(seeds), len(corpus.nests)), np.nan)
        within = {share: np.full_like(regret, np.nan) for share in WITHIN}
        for answer in answers:
            at = seeds.index(answer.seed), answer.nest
            best = Outcomes(corpus.measurements[corpus.nests[answer.nest].digest]).best
            regret[at] = _mean(answer, best, k, lambda regret: regret)
            for share, values in within.items():
                values[at] = _mean(answer, best, k, partial(_misses_at_most, share))
        return Scores([nest.family for nest in corpus.nests], regret, within)

    @property
    def efficiency(self) -> NDArray[np.float64]:
        """transfer_efficiency@k: f64[seeds, nests]; of a random order, its geometric expectation."""
        return np.exp(-self.regret)

    def over_families(self) -> NDArray[np.float64]:
        """f64[seeds]: the geometric mean over families of their geometric means of efficiency."""
        means = [per_group(geometric_mean, self.families, row) for row in self.efficiency]
        return np.array([geometric_mean(list(of_family.values())) for of_family in means])

    def log_by_family(self) -> Mapping[str, float]:
        """ln of the geometric mean of efficiency over the nests of each family, the mean over seeds."""
        means = [per_group(geometric_mean, self.families, row) for row in self.efficiency]
        return {family: float(np.mean([np.log(of[family]) for of in means])) for family in means[0]}

    def select(self, chosen: NDArray[np.bool_]) -> Scores:
        """Some of the nests, bool[seeds, nests], of all seeds in one row: f64[1, m]."""
        families = np.broadcast_to(np.asarray(self.families), chosen.shape)[chosen]
        within = {share: values[chosen][None] for share, values in self.within.items()}
        return Scores(families.tolist(), self.regret[chosen][None], within)


def _mean(answer: Answer, best: Relative, k: int, value: Callable[[float], float]) -> float:
    """Of a function of the regret of one answer, over the orders that it leaves open."""
    if answer.ordered:
        return value(transfer_regret(answer.tried, best, k))
    return expected_transfer_regret(answer.tried, best, k, value)


def _misses_at_most(share: float, regret: float) -> float:
    return float(1.0 - math.exp(-regret) <= share)


def table_row(policy: str, k: int, subset: str, scores: Scores) -> dict[str, object]:
    """One row of the table.

    efficiency: geometric, over all nests as the mean over families; of a subset over its nests. low, high:
    its extremes over seeds. per_nest: geometric mean over nests. worst: the least of a nest.
    """
    efficiency = scores.over_families() if subset == ALL else np.exp(-scores.regret.mean(1))
    several = len(efficiency) > 1
    return {
        "policy": policy,
        "k": k,
        "subset": subset,
        "nests": len(scores.families),
        "efficiency": float(efficiency.mean()),
        "low": float(efficiency.min()) if several else None,
        "high": float(efficiency.max()) if several else None,
        "per_nest": float(np.exp(-scores.regret.mean())),
        "regret": float(scores.regret.mean()),
        **{f"within_{share:.0%}".replace("%", "pct"): float(v.mean()) for share, v in scores.within.items()},
        "worst": float(scores.efficiency.min()),
    }
