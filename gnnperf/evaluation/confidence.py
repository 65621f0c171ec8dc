"""How sure retrieval may be of what it reached, learned from some held-out nests and checked on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from gnnperf.evaluation.metrics import transfer_efficiency
from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.replay import Answer
from gnnperf.retrieval.confidence import WITHIN, Confidence, TrialOutcome, fit_confidence
from gnnperf.training import Corpus

TRIALS = (1, 2, 3, 5, 7, 10)
"""Numbers of measured candidates that one judgement is learned from."""


def learn_confidence(corpus: Corpus, answers: Sequence[Answer]) -> Confidence:
    """From answers to nests of a corpus by models that had not seen their families."""
    return _learn(_judge(corpus, answers, TRIALS))


@dataclass(frozen=True)
class Trust:
    """Confidence in what a policy reached with k candidates, by seeds and nests, nests in corpus order.

    probability: that it is within 10% of the best known, learned from the nests of other folds, of the same
    seed. good: whether it was. confident: whether the probability is above the limit that these call for.
    """

    probability: Float[NDArray, "seeds nests"]
    good: Bool[NDArray, "seeds nests"]
    confident: Bool[NDArray, "seeds nests"]

    @staticmethod
    def of(corpus: Corpus, answers: Sequence[Answer], k: int) -> Trust:
        """From the answers of one policy to every nest, once per seed."""
        seeds = sorted({answer.seed for answer in answers})
        shape = len(seeds), len(corpus.nests)
        trust = Trust(np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool))
        judged = _judge(corpus, answers, (*TRIALS, k))
        for seed, fold in sorted({(answer.seed, answer.fold) for answer in answers}):
            of_seed = [found for found in judged if found.answer.seed == seed]
            confidence = _learn([found for found in of_seed if found.answer.fold != fold])
            for found in (found for found in of_seed if found.answer.fold == fold):
                at = seeds.index(seed), found.answer.nest
                trust.probability[at] = confidence.probability(found.outcome.first(k))
                trust.good[at] = found.good[k]
                trust.confident[at] = trust.probability[at] >= confidence.limit
        return trust

    def surest(self, share: float) -> Bool[NDArray, "seeds nests"]:
        """The share of nests with the highest probabilities, per seed."""
        rank = (-self.probability).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return rank < round(share * self.probability.shape[1])


@dataclass(frozen=True)
class _Judged:
    """An answer and what came of it. good: number of candidates -> whether the best of them is within 10% of
    the best known."""

    answer: Answer
    family: str
    outcome: TrialOutcome
    good: Mapping[int, bool]


def _judge(corpus: Corpus, answers: Sequence[Answer], ks: Sequence[int]) -> list[_Judged]:
    nests = {answer.nest: corpus.nests[answer.nest] for answer in answers}
    best = {at: Outcomes(corpus.measurements[nest.digest]).best for at, nest in nests.items()}
    judged = []
    for answer in answers:
        nest, tried = nests[answer.nest], answer.tried
        shares = [None if found is None else found.share for found in tried]
        good = {k: transfer_efficiency(tried, best[answer.nest], k) >= 1.0 - WITHIN for k in ks}
        judged.append(_Judged(answer, nest.family, TrialOutcome(nest.graph, shares, nest.baseline_s), good))
    return judged


def _learn(judged: Sequence[_Judged]) -> Confidence:
    good = np.array([[found.good[k] for k in TRIALS] for found in judged])
    return fit_confidence([found.outcome for found in judged], good, TRIALS, [j.family for j in judged])
