"""Policies that do not learn: no judgement at all, the same for every nest, exact match, and perfect
judgement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.evaluation.outcomes import Outcomes
from gnnperf.evaluation.rankers.policy import PolicyProposal, Ranker, Rankers
from gnnperf.evaluation.reference import Reference
from gnnperf.graph import signed_log2
from gnnperf.nn import ScheduledProgram
from gnnperf.retrieval.ranking import LOOKED_AT
from gnnperf.training import Corpus, CorpusNest

UNKNOWN = math.log(0.5)
"""ln efficiency assumed of a schedule where it was not measured: one lucky measurement does not win."""
Score: TypeAlias = Callable[[Sequence[ScheduledProgram]], Float[NDArray, " b"]]
"""Of scheduled programs, in nats."""


def chance(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
    """Every order of the pool is equally likely; replay gives the expectation over them."""
    return {"random": lambda query, pool: PolicyProposal(pool, ordered=False)}


def constant(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
    """Three ways to ignore the query, but for its pool.

    "best single": the schedule with the best mean ln efficiency over the reference nests, and no other.
    "fixed order": all schedules, by that mean. "portfolio": at each place the schedule that most improves
    the mean of the best so far, which is what k trials give.
    """

    @lru_cache(maxsize=2)  # many queries have the pool of all
    def choose(pool: tuple[str, ...], kind: Choice) -> PolicyProposal:
        order = kind(reference.log_efficiency[:, _columns(reference, pool)], reference.log_baseline)
        return PolicyProposal([pool[at] for at in order])

    return {
        "best single": lambda query, pool: PolicyProposal(choose(tuple(pool), fixed_order).schedules[:1]),
        "fixed order": lambda query, pool: choose(tuple(pool), fixed_order),
        "portfolio": lambda query, pool: choose(tuple(pool), greedy_portfolio),
    }


def promising(reference: Reference, pool: Sequence[str], count: int) -> Sequence[str]:
    """The first of a pool in the fixed order, for those that cannot look at all there are."""
    if len(pool) <= count:
        return pool
    order = fixed_order(reference.log_efficiency[:, _columns(reference, pool)], reference.log_baseline)
    return [pool[at] for at in order[:count]]


def by_score(reference: Reference, score: Score) -> Ranker:
    """Of the most promising, those that fit the query, by falling score."""

    def rank(query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
        shown = promising(reference, pool, LOOKED_AT)
        programs = reference.queries.of(query, {s: reference.recipes[s] for s in shown})
        fits = {s: program for s, program in zip(shown, programs, strict=True) if program is not None}
        if not fits:
            return PolicyProposal([])
        schedules, scores = [*fits], score([*fits.values()])
        return PolicyProposal([schedules[at] for at in np.argsort(-scores, kind="stable")])

    return rank


def _columns(reference: Reference, pool: Sequence[str]) -> list[int]:
    column = {schedule: at for at, schedule in enumerate(reference.schedules)}
    return [column[schedule] for schedule in pool]


Choice = Callable[[NDArray[np.float32], NDArray[np.float32]], Sequence[int]]
"""ln efficiencies f32[nests, schedules] and those of the baseline f32[nests] -> columns in order."""


def fixed_order(log_efficiency: NDArray[np.float32], log_baseline: NDArray[np.float32]) -> Sequence[int]:
    """Columns by falling mean, where `UNKNOWN` stands for what is unmeasured."""
    mean = np.nan_to_num(log_efficiency, nan=UNKNOWN).mean(0)
    return [int(column) for column in np.argsort(-mean, kind="stable")]


def greedy_portfolio(log_efficiency: NDArray[np.float32], log_baseline: NDArray[np.float32]) -> Sequence[int]:
    """Columns, greedily: the next one improves the mean over nests of the best so far the most.

    Greedy choice comes within 1 - 1/e of the best set, as the gain is submodular (Nemhauser et al.,
    "An analysis of approximations for maximizing submodular set functions", 1978). What is unmeasured on a
    nest gains nothing there. When nothing gains anything any more, the fixed order decides.
    """
    reached = np.nan_to_num(log_efficiency, nan=-np.inf)
    best = log_baseline.copy()
    chosen: list[int] = []
    while len(chosen) < reached.shape[1]:
        gain = np.maximum(reached - best[:, None], 0.0).mean(0)
        column = int(gain.argmax())
        if gain[column] <= 0:
            break
        chosen.append(column)
        best = np.maximum(best, reached[:, column])
    return [*dict.fromkeys([*chosen, *fixed_order(log_efficiency, log_baseline)])]


def lookup(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
    """A nest with the digest of the query; else the nest of a kernel of the same name whose graph has as
    many nodes and edges, the one nearest in size: its schedules, fastest first. Else nothing: the baseline.
    """
    orders = {
        nest.digest: outcomes.fastest_first(outcomes.measured)
        for nest, outcomes in zip(reference.nests, reference.outcomes, strict=True)
    }

    def rank(query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
        if query.digest in orders:
            return PolicyProposal(orders[query.digest])
        same = [n for n in reference.nests if n.kernel == query.kernel and _shape(n) == _shape(query)]
        nearest = min(same, key=lambda n: abs(_log_bytes(n) - _log_bytes(query)), default=None)
        return PolicyProposal(orders[nearest.digest] if nearest else [])

    return {"exact lookup": rank}


def _shape(nest: CorpusNest) -> tuple[int, int]:
    return len(nest.graph.nodes), len(nest.graph.edges)


def _log_bytes(nest: CorpusNest) -> float:
    """Size of a nest: log2 of the distinct bytes that it touches."""
    size = nest.graph.values.get("distinct_bytes", 0)
    return signed_log2(size) if isinstance(size, int | float) else 0.0


def oracle(reference: Reference, seed: int, corpus: Corpus, quick: bool) -> Rankers:
    """Knows what every schedule of the pool gives: the bound of all policies. It alone looks at the whole
    corpus."""
    return {
        "oracle": lambda query, pool: PolicyProposal(
            Outcomes(corpus.measurements[query.digest]).fastest_first(pool)
        )
    }
