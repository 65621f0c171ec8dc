"""Perfect judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.training import Corpus, CorpusNest


class Oracle:
    """Knows what every schedule of the pool gives: the bound of all policies. It alone is given the whole
    corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        def rank(query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
            return PolicyProposal(Outcomes(self.corpus.measurements[query.digest]).fastest_first(pool))

        return {"oracle": rank}
