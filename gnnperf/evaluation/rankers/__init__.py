"""Ways to choose schedules for a nest, ours and the ones to be compared with, all behind one protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gnnperf.evaluation.rankers import flat, learned, simple, trees
from gnnperf.evaluation.rankers.learned import PARTS
from gnnperf.evaluation.rankers.policy import Policy, PolicyProposal, Ranker, Rankers
from gnnperf.evaluation.reference import Reference
from gnnperf.training import Corpus

__all__ = ["LEARNING", "PARTS", "POLICIES", "Policy", "PolicyProposal", "Ranker", "Rankers", "make_policy"]

POLICIES: Mapping[str, Policy] = {
    "random": simple.chance,
    "constant": simple.constant,
    "lookup": simple.lookup,
    "flat": flat.nearest,
    "trees": trees.boosted,
    "perceptron": learned.perceptron,
    **{part: learned.without(part) for part in PARTS},
    "ours": learned.ours,
    "oracle": simple.oracle,
}
"""In the order of the table."""
LEARNING = frozenset({"trees", "perceptron", *PARTS, "ours"})
"""Those whose answers depend on a seed."""


def make_policy(name: str, corpus: Corpus, quick: bool = False) -> Callable[[Reference, int], Rankers]:
    """A policy by name, of reference nests and a seed. quick: networks train briefly."""
    policy = POLICIES[name]
    return lambda reference, seed: policy(reference, seed, corpus, quick)
