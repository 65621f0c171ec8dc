"""How sure retrieval may be of what it reached, learned from some held-out nests and checked on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from gnnperf.evaluation.metrics import transfer_efficiency
from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.replay import Answer
from gnnperf.retrieval.confidence import WITHIN, Confidence, Outcome, fit_confidence
from gnnperf.training import Corpus

TRIALS = (1, 2, 3, 5, 7, 10)
"""Numbers of measured candidates that one judgement is learned from."""


def learn_confidence(corpus: Corpus, answers: Sequence[Answer]) -> Confidence:
    """From answers to nests of a corpus by models that had not seen their families."""
    good = np.array([[_good(corpus, answer, k) for k in TRIALS] for answer in answers])
    families = [corpus.nests[answer.nest].family for answer in answers]
    return fit_confidence([_outcome(corpus, answer) for answer in answers], good, TRIALS, families)


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
        for seed, fold in sorted({(answer.seed, answer.fold) for answer in answers}):
            of_seed = [answer for answer in answers if answer.seed == seed]
            confidence = learn_confidence(corpus, [answer for answer in of_seed if answer.fold != fold])
            for answer in (answer for answer in of_seed if answer.fold == fold):
                at = seeds.index(seed), answer.nest
                trust.probability[at] = confidence.probability(_outcome(corpus, answer).first(k))
                trust.good[at] = _good(corpus, answer, k)
                trust.confident[at] = trust.probability[at] >= confidence.limit
        return trust

    def surest(self, share: float) -> Bool[NDArray, "seeds nests"]:
        """The share of nests with the highest probabilities, per seed."""
        rank = (-self.probability).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return rank < round(share * self.probability.shape[1])


def _outcome(corpus: Corpus, answer: Answer) -> Outcome:
    nest = corpus.nests[answer.nest]
    shares = [None if tried is None else tried.share for tried in answer.tried]
    return Outcome(nest.graph, shares, nest.baseline_s)


def _good(corpus: Corpus, answer: Answer, k: int) -> bool:
    best = Outcomes(corpus.measurements[corpus.nests[answer.nest].digest]).best
    return transfer_efficiency(answer.tried, best, k) >= 1.0 - WITHIN
