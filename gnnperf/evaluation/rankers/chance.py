"""No judgement at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.training import CorpusNest


class Chance:
    """Every order of the pool is equally likely; replay gives the expectation over them."""

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        def rank(query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
            return PolicyProposal(pool, ordered=False)

        return {"random": rank}
