"""What a policy may know: the nests of a fold's reference set, and nothing of its queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gnnperf.devices import VectorUnit
from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.splits import Fold
from gnnperf.schedules.recipes import Recipe
from gnnperf.training import Corpus, CorpusNest
from gnnperf.training.efficiency import FAILURE
from gnnperf.training.scheduled import ScheduledNests

BORROWED = frozenset({"foreign", "asked"})
"""Origins of schedules that no search of the nest itself came upon."""


@dataclass(frozen=True)
class Reference:
    """What would be in a corpus without the queries of a fold: first the `train` nests, then those for
    validation.

    The measurements of the queries are not in it, so that no policy can look at them by mistake. Nor are
    schedules that the searches of the queries alone came upon: that they were then tried on other nests, as
    good foreign ones or because a model was asked for its first, would not have happened without the queries.

    queries: what recipes make of the queries, on the machine that they are for.
    """

    corpus: Corpus
    train: int
    queries: ScheduledNests

    @staticmethod
    def of(corpus: Corpus, fold: Fold, vectors: VectorUnit | None = None) -> Reference:
        """vectors: of the machine that queries are for; by default that of the corpus."""
        nests = tuple(corpus.nests[i] for i in fold.reference)
        recorded = {nest.digest: corpus.measurements[nest.digest] for nest in nests}
        found = {s for of_nest in recorded.values() for s, m in of_nest.items() if m.origin not in BORROWED}
        measurements = {
            digest: {s: m for s, m in of_nest.items() if s in found} for digest, of_nest in recorded.items()
        }
        known = replace(corpus, nests=nests, measurements=measurements)
        queries = corpus.scheduled if vectors is None else corpus.scheduled.on(vectors)
        return Reference(known, len(fold.train), queries)

    @property
    def nests(self) -> Sequence[CorpusNest]:
        return self.corpus.nests

    @property
    def validation(self) -> range:
        """Positions of the validation nests."""
        return range(self.train, len(self.nests))

    @cached_property
    def outcomes(self) -> Sequence[Outcomes]:
        """Of each nest."""
        return [Outcomes(self.corpus.measurements[nest.digest]) for nest in self.nests]

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """What was measured on some nest, by schedule id."""
        return self.corpus.efficiency.recipes

    @cached_property
    def schedules(self) -> Sequence[str]:
        """Ids of the recipes."""
        return list(self.recipes)

    @property
    def log_efficiency(self) -> NDArray[np.float32]:
        """f32[nests, schedules], see `EfficiencyTable`."""
        return self.corpus.efficiency.log_efficiency

    @cached_property
    def log_baseline(self) -> NDArray[np.float32]:
        """f32[nests]: ln(best known runtime / runtime of the baseline), in [FAILURE, 0]."""
        shares = [outcomes.best.share for outcomes in self.outcomes]
        return np.maximum(FAILURE, np.log(shares)).astype(np.float32)
