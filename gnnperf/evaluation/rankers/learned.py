"""Ours: the encoder and the head that learned from measured speedups, with and without dynamic profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker
from gnnperf.evaluation.reference import Reference
from gnnperf.nn import Bundle
from gnnperf.retrieval.from_corpus import recipe_words, records_of
from gnnperf.retrieval.ranking import rank
from gnnperf.store import Neighbour, Nest, Record
from gnnperf.training import CorpusNest, fit_all

NEIGHBOURS = 48


class Learned:
    """One training; asked without the dynamic profiles of nests, and with them."""

    def fit(self, reference: Reference, seed: int) -> Mapping[str, Ranker]:
        bundle = _train(reference, seed)
        return {
            "ours without profile": _Retrieval(reference, bundle, with_profiles=False),
            "ours": _Retrieval(reference, bundle, with_profiles=True),
        }


class _Retrieval:
    def __init__(self, reference: Reference, bundle: Bundle, *, with_profiles: bool) -> None:
        self.bundle, self.with_profiles = bundle, with_profiles
        self.recipes = reference.recipes
        self.schedules = {recipe: schedule for schedule, recipe in reference.recipes.items()}
        self.points = bundle.embed([n.graph for n in reference.nests], with_profiles=with_profiles)
        corpus, self.known = reference.corpus, list[tuple[Nest, tuple[Record, ...]]]()
        for n in reference.nests:
            nest = Nest(n.digest, n.kernel, n.family, n.frontend)
            records = records_of(
                nest, corpus.measurements[n.digest].values(), recipe_words, {}, baseline=n.baseline,
                device_fingerprint=corpus.device, device_name="replay",
            )  # fmt: skip
            self.known.append((nest, tuple(records)))

    def __call__(self, query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
        (point,) = self.bundle.embed([query.graph], with_profiles=self.with_profiles)
        distances = 1.0 - self.points @ point
        nearest = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        neighbours = [Neighbour(self.known[i][0], float(distances[i]), self.known[i][1]) for i in nearest]
        possible = {self.recipes[schedule] for schedule in pool}
        score = partial(self.bundle.score, [query.graph], with_profiles=self.with_profiles)
        candidates = rank(neighbours, len(pool), lambda recipes: score(recipes)[0], possible.__contains__)
        return PolicyProposal([self.schedules[c.schedule] for c in candidates])


def _train(reference: Reference, seed: int) -> Bundle:
    module, _ = fit_all(reference.corpus, seed)
    return Bundle(module.encoder, module.head)
