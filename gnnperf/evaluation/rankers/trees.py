"""Gradient-boosted trees on the numbers of scheduled programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from gnnperf.evaluation.rankers.constant import promising
from gnnperf.evaluation.rankers.flat import flat_programs
from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.retrieval.ranking import LOOKED_AT
from gnnperf.training import CorpusNest

Rows = tuple[Float[NDArray, "m f"], Float[NDArray, " m"], Float[NDArray, " m"]]
ROUNDS = 400
"""Trees at most; the validation nests say after how many to stop."""


class Trees:
    """Predicts ln efficiency from what the network is given, but for the edges; schedules are tried by
    falling prediction."""

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        table, scheduled = reference.log_efficiency, reference.corpus.scheduled

        def rows(positions: Sequence[int]) -> Rows:
            """Features, targets and weights of what was measured on some nests, which count alike."""
            features, target, weight = [], [], []
            for at in positions:
                known = ~np.isnan(table[at])
                recipes = {s: r for (s, r), k in zip(reference.recipes.items(), known, strict=True) if k}
                programs = scheduled.of(reference.nests[at], recipes)
                fits = np.array([program is not None for program in programs], dtype=bool)
                if fits.any():
                    features.append(flat_programs([p for p in programs if p is not None]))
                    target.append(table[at, known][fits])
                    weight.append(np.full(fits.sum(), 1.0 / fits.sum()))
            return np.concatenate(features), np.concatenate(target), np.concatenate(weight)

        model = HistGradientBoostingRegressor(max_iter=ROUNDS, early_stopping=False, random_state=seed)
        features, target, weight = rows(range(reference.train))
        model.fit(features, target, sample_weight=weight)
        features, target, weight = rows(reference.validation)
        errors = [
            np.average((predicted - target) ** 2, weights=weight)
            for predicted in model.staged_predict(features)
        ]
        model.set_params(max_iter=int(np.argmin(errors)) + 1)
        features, target, weight = rows(range(len(reference.nests)))
        model.fit(features, target, sample_weight=weight)

        def order(query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
            shown = promising(reference, pool, LOOKED_AT)
            programs = reference.queries.of(query, {s: reference.recipes[s] for s in shown})
            fits = [s for s, program in zip(shown, programs, strict=True) if program is not None]
            if not fits:
                return PolicyProposal([])
            predicted = model.predict(flat_programs([p for p in programs if p is not None]))
            return PolicyProposal([fits[at] for at in np.argsort(-predicted, kind="stable")])

        return {"boosted trees": order}
