"""Ours: the encoder and the head that learned from measured speedups; and the same with one part left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.nn import Bundle, EncoderConfig, ScheduledProgram
from gnnperf.retrieval.from_corpus import recipe_words, records_of
from gnnperf.retrieval.ranking import rank
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Neighbour, Nest, Record
from gnnperf.training import CorpusNest, fit_all
from gnnperf.training.refit import QUICK

NEIGHBOURS = 48

Distances = Callable[[CorpusNest], Float[NDArray, " r"]]
"""Of a query to the reference nests, on the scale of cosine distances between embeddings."""
Score = Callable[[Sequence[ScheduledProgram]], Float[NDArray, " b"]]
"""Of scheduled programs, in nats."""


class Learned:
    """The released way to train, and retrieval with what comes of it. settings: as of `RetrievalModule`."""

    row: ClassVar = "ours"
    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, quick: bool = False) -> None:
        self.given = {**self.settings, **(QUICK if quick else {})}

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        module, _ = fit_all(reference.corpus, seed, **self.given)
        bundle = Bundle(module.encoder, module.head)
        points = bundle.embed([nest.graph for nest in reference.nests])

        def distances(query: CorpusNest) -> Float[NDArray, " r"]:
            return 1.0 - points @ bundle.embed([query.graph])[0]

        rankers: dict[str, Ranker] = {self.row: RetrievalRanker(reference, distances, bundle.score)}
        if self.row == Learned.row:
            rankers["neighbours alone"] = RetrievalRanker(reference, distances, None)
            rankers["nearest nest"] = NearestNest(reference, distances)
        return rankers


class WithoutContrastiveLoss(Learned):
    """Nothing says which nests are alike."""

    row = "without contrastive loss"
    settings: ClassVar = {"contrastive_weight": 0.0, "correlation_weight": 0.0}


class WithoutMessagePassing(Learned):
    """Every node by itself, then the readout."""

    row = "without message passing"
    settings: ClassVar = {"encoder": EncoderConfig(layers=0)}


class UntrainedEncoder(Learned):
    """Its weights are as drawn; the head learns."""

    row = "untrained encoder"
    settings: ClassVar = {"frozen_encoder": True}


class RetrievalRanker:
    """What `gnnperf retrieve` does with a nest, but for measuring: neighbours by a distance, and the order of
    their schedules by what they measured and by a score; without the score, by the neighbours alone."""

    def __init__(self, reference: Reference, distances: Distances, score: Score | None) -> None:
        self.distances, self.score = distances, score
        self.scheduled = reference.queries
        self.recipes = reference.recipes
        self.schedules = {recipe: schedule for schedule, recipe in reference.recipes.items()}
        corpus, self.known = reference.corpus, list[tuple[Nest, tuple[Record, ...]]]()
        for n in reference.nests:
            nest = Nest(n.digest, n.kernel, n.family, n.frontend)
            records = records_of(
                nest, corpus.measurements[n.digest].values(), recipe_words, {}, baseline=n.baseline,
                device_fingerprint=corpus.device, device_name="replay",
            )  # fmt: skip
            self.known.append((nest, tuple(records)))

    def __call__(self, query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
        distances = self.distances(query)
        nearest = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        neighbours = [Neighbour(self.known[i][0], float(distances[i]), self.known[i][1]) for i in nearest]
        possible = {self.recipes[schedule] for schedule in pool}
        predict = partial(self._scores, query, self.score) if self.score else None
        candidates = rank(neighbours, len(pool), predict, possible.__contains__)
        return PolicyProposal([self.schedules[c.schedule] for c in candidates], distances=distances)

    def _scores(self, query: CorpusNest, score: Score, recipes: Sequence[Recipe]) -> NDArray[np.float32]:
        programs = self.scheduled.of(query, {self.schedules[recipe]: recipe for recipe in recipes})
        scores = np.full(len(recipes), -np.inf, np.float32)
        scores[[program is not None for program in programs]] = score([p for p in programs if p is not None])
        return scores - scores.max(initial=-1e30)


class NearestNest:
    """The schedules of the nearest nest alone, the fastest first."""

    def __init__(self, reference: Reference, distances: Distances) -> None:
        self.distances = distances
        self.orders = [outcomes.fastest_first(outcomes.measured) for outcomes in reference.outcomes]

    def __call__(self, query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
        possible = set(pool)
        for nearest in np.argsort(self.distances(query), kind="stable"):
            order = [schedule for schedule in self.orders[nearest] if schedule in possible]
            if order:
                return PolicyProposal(order)
        return PolicyProposal([])
