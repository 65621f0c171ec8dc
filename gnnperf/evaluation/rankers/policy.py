"""What every policy is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.evaluation.reference import Reference
from gnnperf.training import Corpus, CorpusNest


@dataclass(frozen=True)
class PolicyProposal:
    """What to try on a nest.

    schedules: ids, in the order to try them. ordered: False says that all orders are equally likely.
    distances: of the nest to the reference nests, f32[r], where the policy has such.
    """

    schedules: Sequence[str]
    ordered: bool = True
    distances: Float[NDArray, " r"] | None = None


class Ranker(Protocol):
    """Answers queries. All that it sees of one is the nest (its graph, kernel and sizes) and the pool: the
    known schedules that were measured on it, among which it has to choose."""

    def __call__(self, query: CorpusNest, pool: Sequence[str]) -> PolicyProposal: ...


Rankers: TypeAlias = Mapping[str, Ranker]
"""One per row of the table, by the name of the row."""
Policy: TypeAlias = Callable[[Reference, int, Corpus, bool], Rankers]
"""A way of choosing schedules, with whatever it learns from the reference nests: of these, a seed, the whole
corpus, which only the oracle may look at, and whether networks train briefly."""
