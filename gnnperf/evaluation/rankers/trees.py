"""Gradient-boosted trees on flat features of the nest and of the recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from gnnperf.evaluation.rankers.flat import Standardised
from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.schedules.recipes import recipe_features
from gnnperf.training import CorpusNest

ROUNDS = 400
"""Trees at most; the validation nests say after how many to stop."""


class Trees:
    """Predicts ln efficiency of (nest, recipe); schedules are tried by falling prediction."""

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        table = reference.log_efficiency
        locate = Standardised(reference.nests)
        nests = locate(reference.nests)
        recipes = np.stack([recipe_features(recipe) for recipe in reference.recipes.values()])

        def rows(positions: Sequence[int]) -> tuple[NDArray[np.float32], ...]:
            """Features, targets and weights of what was measured on some nests, which count alike."""
            nest, schedule = np.nonzero(~np.isnan(table[positions]))
            chosen = np.asarray(positions)[nest]
            weight = 1.0 / np.bincount(nest)[nest]
            return (
                np.hstack([nests[chosen], recipes[schedule]]),
                table[chosen, schedule],
                weight.astype(np.float32),
            )

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
        return {"boosted trees": _Predictor(reference, model, locate, recipes)}


class _Predictor:
    def __init__(
        self,
        reference: Reference,
        model: HistGradientBoostingRegressor,
        locate: Standardised,
        recipes: NDArray[np.float32],
    ) -> None:
        self.schedules, self.model, self.locate, self.recipes = reference.schedules, model, locate, recipes

    def __call__(self, query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
        nest = np.repeat(self.locate([query]), len(self.recipes), axis=0)
        predicted = self.model.predict(np.hstack([nest, self.recipes]))
        return PolicyProposal([self.schedules[s] for s in np.argsort(-predicted, kind="stable")])
