"""Ours: the encoder and the head that learned from measured speedups; the same with one part left out; and a
perceptron on the same numbers, without the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.evaluation.rankers.flat import Standardised, choose_bandwidth
from gnnperf.evaluation.rankers.policy import Policy, PolicyProposal, Rankers
from gnnperf.evaluation.rankers.simple import Score, by_score
from gnnperf.evaluation.reference import Reference
from gnnperf.nn import Bundle, EncoderConfig, ScheduledProgram, ScheduleHead, collate_programs
from gnnperf.retrieval.from_corpus import recipe_words, recipes_kept, records_of
from gnnperf.retrieval.ranking import BANDWIDTH, rank
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Neighbour, Nest, Record
from gnnperf.training import Corpus, CorpusNest

NEIGHBOURS = 48
PARTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "untrained": ("untrained encoder", {"frozen_encoder": True}),
    "no-passing": ("without message passing", {"encoder": EncoderConfig(layers=0)}),
    "no-contrast": ("without contrastive loss", {"contrastive_weight": 0.0, "correlation_weight": 0.0}),
}
"""Ours with a part left out: policy -> row of the table, and settings of `RetrievalModule`. The encoder is as
drawn while the head learns; every node is by itself before the readout; nothing says which nests are alike.
"""

Distances: TypeAlias = Callable[[CorpusNest], Float[NDArray, " r"]]
"""Of a query to the reference nests, on the scale of cosine distances between embeddings."""


def ours(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
    """The released way to train, and retrieval with what comes of it."""
    return _rows("ours", "", reference, *_trained(reference, seed, quick))


def without(part: str) -> Policy:
    """Ours without one of PARTS."""
    row, settings = PARTS[part]

    def policy(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
        return _rows(row, f", {row}", reference, *_trained(reference, seed, quick, **settings))

    return policy


def _rows(row: str, of: str, reference: Reference, distances: Distances, score: Score) -> Rankers:
    """With the head; the neighbours alone; the nearest of them alone."""
    return {
        row: RetrievalRanker(reference, distances, score),
        f"neighbours alone{of}": RetrievalRanker(reference, distances, None),
        f"nearest nest{of}": NearestNest(reference, distances),
    }


def _trained(reference: Reference, seed: int, quick: bool, **settings: Any) -> tuple[Distances, Score]:
    # Lightning takes seconds to import, and policies that do not learn have no use for it.
    from gnnperf.training.refit import QUICK, fit_all

    module, _ = fit_all(reference.corpus, seed, **settings, **(QUICK if quick else {}))
    bundle = Bundle(module.encoder, module.head)
    points = bundle.embed([nest.graph for nest in reference.nests])

    def distances(query: CorpusNest) -> Float[NDArray, " r"]:
        return 1.0 - points @ bundle.embed([query.graph])[0]

    return distances, bundle.score


def perceptron(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
    """One training, two rows. "perceptron": its scores alone. "without network": in the place of the head,
    with the neighbours that flat features find in the place of the embedding's."""
    from gnnperf.training.module import NumbersModule
    from gnnperf.training.refit import QUICK, fit_all

    module, _ = fit_all(reference.corpus, seed, module=NumbersModule, **(QUICK if quick else {}))
    score = partial(score_numbers, module.head)
    locate = Standardised(reference.nests)
    points = locate(reference.nests)
    unit = choose_bandwidth(reference, points) / BANDWIDTH

    def distances(query: CorpusNest) -> Float[NDArray, " r"]:
        return np.linalg.norm(points - locate([query])[0], axis=1) / unit

    return {
        "perceptron": by_score(reference, score),
        "without network": RetrievalRanker(reference, distances, score),
    }


def score_numbers(head: ScheduleHead, programs: Sequence[ScheduledProgram]) -> Float[NDArray, " b"]:
    """What the judge of numbers says of b scheduled programs."""
    if not programs:
        return np.zeros(0, np.float32)
    graphs, node_costs, facts = collate_programs(programs)
    with torch.inference_mode():
        return head.by_numbers(graphs.node_kind, node_costs, graphs.batch, facts).numpy()


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
            stored = recipes_kept(corpus.measurements[n.digest].values())
            records = records_of(
                nest, stored, recipe_words, {}, baseline=n.baseline, device_fingerprint=corpus.device,
                device_name="replay",
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
