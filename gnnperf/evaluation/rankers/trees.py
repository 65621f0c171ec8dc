"""Gradient-boosted trees on the numbers of scheduled programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.evaluation.rankers.flat import flat_programs
from gnnperf.evaluation.rankers.policy import Rankers
from gnnperf.evaluation.rankers.simple import by_score
from gnnperf.evaluation.reference import Reference
from gnnperf.nn import ScheduledProgram
from gnnperf.training import Corpus

Rows = tuple[Float[NDArray, "m f"], Float[NDArray, " m"], Float[NDArray, " m"]]
ROUNDS = 400
"""Trees at most; the validation nests say after how many to stop."""


def boosted(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
    """Predicts ln efficiency from what the network is given, but for the edges; schedules are tried by
    falling prediction."""
    from sklearn.ensemble import HistGradientBoostingRegressor

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
        np.average((predicted - target) ** 2, weights=weight) for predicted in model.staged_predict(features)
    ]
    model.set_params(max_iter=int(np.argmin(errors)) + 1)
    features, target, weight = rows(range(len(reference.nests)))
    model.fit(features, target, sample_weight=weight)

    def score(programs: Sequence[ScheduledProgram]) -> Float[NDArray, " b"]:
        predicted: Float[NDArray, " b"] = model.predict(flat_programs(programs))
        return predicted

    return {"boosted trees": by_score(reference, score)}
