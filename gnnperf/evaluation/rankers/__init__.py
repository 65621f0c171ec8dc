"""Ways to choose schedules for a nest, ours and the ones to be compared with, all behind one protocol.

A policy is imported when it is asked for: some bring a library of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from gnnperf.evaluation.rankers.policy import Policy, PolicyProposal, Ranker
from gnnperf.training import Corpus

__all__ = ["LEARNING", "PARTS", "POLICIES", "Policy", "PolicyProposal", "Ranker", "make_policy"]

POLICIES: Mapping[str, str] = {
    "random": "chance.Chance",
    "constant": "constant.Constant",
    "lookup": "lookup.Lookup",
    "flat": "flat.Flat",
    "trees": "trees.Trees",
    "perceptron": "perceptron.Perceptron",
    "untrained": "learned.UntrainedEncoder",
    "no-passing": "learned.WithoutMessagePassing",
    "no-contrast": "learned.WithoutContrastiveLoss",
    "ours": "learned.Learned",
    "oracle": "oracle.Oracle",
}
"""In the order of the table: name -> module and class below this package."""
PARTS = ("untrained", "no-passing", "no-contrast")
"""Ours with a part left out."""
NETWORKS = frozenset({"perceptron", *PARTS, "ours"})
LEARNING = NETWORKS | {"trees"}
"""Those whose answers depend on a seed."""


def make_policy(name: str, corpus: Corpus, quick: bool = False) -> Policy:
    """A policy by name; only the oracle is given the corpus. quick: networks train briefly."""
    module, _, cls = POLICIES[name].partition(".")
    kind = getattr(import_module(f"{__name__}.{module}"), cls)
    given = (corpus,) if name == "oracle" else (quick,) if name in NETWORKS else ()
    policy: Policy = kind(*given)
    return policy
