"""Which schedules to try on a nest, in which order.

Candidates are the schedules that the neighbours measured. Evidence says which of them to look at: the
average, over the neighbours, of ln(its speed there / the best speed there), weighted by likeness, where a
schedule unknown to a neighbour is worth `UNKNOWN`, so that one lucky measurement far away does not win
(kernel regression, Nadaraya-Watson, in the embedding space). The head then scores the graph of what each
makes of this nest, which orders them as a portfolio: the best of the first few counts. A mean of both scores
does worse on held-out families, and the more so the more the evidence counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gnnperf.retrieval.portfolio import portfolio
from gnnperf.schedules.recipes import Recipe, recipe_features
from gnnperf.store import Neighbour, Record

BANDWIDTH = 0.05
"""Distance at which a neighbour's weight has fallen to 1/e (cosine distance). Both halves of the held-out
families choose it, and how many neighbours are asked, alike."""
UNKNOWN = math.log(0.5)
"""ln efficiency assumed where a neighbour did not measure a schedule."""
FAILURE = math.log(0.05)
"""ln efficiency of a schedule that failed on a neighbour."""
LOOKED_AT = 128
"""Candidates with the most evidence, whose scheduled graphs the head is shown: about 5 ms each."""
SHORTLIST = 64
"""Candidates with the highest scores, of which a portfolio is made."""

Predict = Callable[[Sequence[Recipe]], NDArray[np.float32]]
"""s recipes -> f32[s], scores on the query in nats, 0 for the best; -inf where one does not fit."""


@dataclass(frozen=True)
class RecipeCandidate:
    """A schedule to try. `neighbour` is the nearest nest that vouches for it."""

    schedule: Recipe
    score: float
    neighbour: str
    neighbour_kernel: str
    distance: float

    @property
    def words(self) -> str:
        """For people."""
        return self.schedule.describe()


@dataclass
class _Evidence:
    weighted: float = 0.0
    weight: float = 0.0
    nearest: Neighbour | None = None
    """That it worked on."""


def rank(
    neighbours: Sequence[Neighbour],
    limit: int,
    predict: Predict | None = None,
    possible: Callable[[Recipe], bool] = lambda _: True,
) -> list[RecipeCandidate]:
    """The `limit` schedules to try, in the order to try them. `neighbours` nearest first.

    predict: the head on the query; None: the neighbours alone decide.
    possible: which schedules can be tried at all; in a replay, those whose outcome is known.
    """
    candidates = [c for c in _evidence(neighbours) if possible(c.schedule)]
    if not candidates:
        return []
    if predict is not None:
        candidates = _best(candidates)[:LOOKED_AT]
        predicted = predict([c.schedule for c in candidates])
        candidates = [
            replace(c, score=float(p)) for c, p in zip(candidates, predicted, strict=True) if p > -math.inf
        ]
    best = _best(candidates)
    shortlist, rest = best[:SHORTLIST], best[SHORTLIST:]
    if not shortlist:
        return []
    features = np.stack([recipe_features(c.schedule) for c in shortlist])
    order = portfolio(np.array([c.score for c in shortlist]), features, limit)
    return [*(shortlist[i] for i in order), *rest][:limit]


def _best(candidates: Sequence[RecipeCandidate]) -> list[RecipeCandidate]:
    return sorted(candidates, key=lambda c: (-c.score, c.distance, c.schedule.id))


def _evidence(neighbours: Sequence[Neighbour]) -> list[RecipeCandidate]:
    """Every schedule that worked on a neighbour, scored by what the neighbours measured."""
    nearest = min((n.distance for n in neighbours), default=0.0)
    weights = [math.exp(-(n.distance - nearest) / BANDWIDTH) for n in neighbours]
    total = sum(weights)
    evidence: dict[str, _Evidence] = {}
    for neighbour, weight in zip(neighbours, weights, strict=True):
        for schedule, (efficiency, speedup) in log_efficiencies(neighbour.records).items():
            found = evidence.setdefault(schedule, _Evidence())
            found.weighted += weight * efficiency
            found.weight += weight
            if found.nearest is None and speedup is not None:
                found.nearest = neighbour
    return [
        RecipeCandidate(
            Recipe.from_json(schedule),
            (found.weighted + (total - found.weight) * UNKNOWN) / total,
            found.nearest.nest.digest,
            found.nearest.nest.kernel,
            found.nearest.distance,
        )
        for schedule, found in evidence.items()
        if found.nearest is not None  # the others failed wherever they were tried
    ]


def log_efficiencies(records: Iterable[Record]) -> dict[str, tuple[float, float | None]]:
    """schedule -> (ln(its speedup / best speedup) <= 0, its speedup) of one nest's records.

    Speedups over the interleaved baseline are compared, not runtimes: they do not drift with the
    machine's clock. Of repeated measurements the best counts; failures count as `FAILURE`. Schedules
    that are no recipes (traces, configs) are passed over."""
    speedups: dict[str, float | None] = {}
    for record in records:
        if record.schedule_kind != "recipe":
            continue
        old = speedups.get(record.schedule)
        if record.status == "ok" and record.speedup is not None:
            speedups[record.schedule] = max(record.speedup, old or 0.0)
        else:
            speedups.setdefault(record.schedule, None)
    best = max((s for s in speedups.values() if s is not None), default=1.0)
    return {k: (FAILURE if s is None else max(FAILURE, math.log(s / best)), s) for k, s in speedups.items()}
