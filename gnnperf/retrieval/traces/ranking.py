"""In which order candidates are tried: by the cost model, as a portfolio; and once some were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnnperf.frontends.tvm import TvmTask
from gnnperf.graph import EncodedGraph
from gnnperf.retrieval.portfolio import portfolio
from gnnperf.retrieval.traces.candidates import TraceCandidate
from gnnperf.retrieval.traces.proposals import variants
from gnnperf.schedules.traces import TraceDocument
from gnnperf.schedules.traces.document import anchor_tiles, sketch_of, unrolled

SHORTLIST = 48
"""Candidates with the highest scores, of which a portfolio is made."""
FAILED = 1.0
"""A candidate that failed is taken for so many nats slower than the slowest that ran."""
LOOPS, LEVELS = 8, 4
"""Of the tiles that are compared."""


class GraphScorer(Protocol):
    """What ranks scheduled graphs of one task."""

    def score_encoded(self, graphs: Sequence[EncodedGraph]) -> NDArray[np.float32]:
        """f32[n], the most promising the highest."""


def ranked(candidates: Sequence[TraceCandidate], model: GraphScorer) -> list[TraceCandidate]:
    """In the order to try them: by the cost model, as a portfolio: the best of the first few counts."""
    return _in_order(scored(candidates, model))


def scored(candidates: Sequence[TraceCandidate], model: GraphScorer) -> list[TraceCandidate]:
    """The same candidates with the model's scores."""
    if not candidates:
        return []
    scores = model.score_encoded([c.graph for c in candidates])
    return [replace(c, score=float(s)) for c, s in zip(candidates, scores, strict=True)]


def _in_order(
    candidates: Sequence[TraceCandidate], measured: Sequence[tuple[TraceCandidate, float]] = ()
) -> list[TraceCandidate]:
    """The portfolio of scored candidates. measured: others, and their ln efficiencies."""
    by_score = sorted(candidates, key=lambda c: (-c.score, c.turn))
    compared = [*(c for c, _ in measured), *by_score[:SHORTLIST]]
    if not compared:
        return []
    scores = np.array([c.score for c in compared])
    features = np.stack([trace_features(c.schedule) for c in compared])
    order = portfolio(scores, features, len(compared), dict(enumerate(e for _, e in measured)))
    return [*(compared[int(n)] for n in order), *by_score[SHORTLIST:]]


def hedged(order: Sequence[TraceCandidate], count: int) -> list[TraceCandidate]:
    """The same order, but that the candidate with the first turn is among the first `count`, as the last of
    them if it was not; where only one is wanted, it is the best ranked."""
    found = list(order)
    first = min(range(len(found)), key=lambda n: found[n].turn, default=0)
    if 1 < count <= first:
        found.insert(count - 1, found.pop(first))
    return found


def ranked_again(
    task: TvmTask,
    target: Any,
    model: GraphScorer,
    left: Sequence[TraceCandidate],
    tried: Sequence[tuple[TraceCandidate, float | None]],
) -> list[TraceCandidate]:
    """In the order to try them once some were measured. The model is expected to err on like schedules as it
    erred on these; variants of the fastest, with one loop's tiles changed, join what is left.

    tried: candidates and their runtimes in seconds, None where they failed.
    """
    ran = [(runtime_s, n) for n, (_, runtime_s) in enumerate(tried) if runtime_s is not None]
    if not ran:
        return list(left)
    fastest = tried[min(ran)[1]][0]
    known = {candidate.key for candidate, _ in tried} | {candidate.key for candidate in left}
    new = [c for c in variants(task, fastest, target) if c.key not in known]
    slowest = math.log(max(ran)[0]) + FAILED
    measured = [(c, -(slowest if runtime_s is None else math.log(runtime_s))) for c, runtime_s in tried]
    return _in_order([*left, *scored(new, model)], measured)


def trace_features(document: TraceDocument) -> NDArray[np.float64]:
    """f64[LOOPS * LEVELS + 3], near for like traces of one task: logarithms of the tiles of the innermost
    loops, how far is unrolled, where results are written, and whether the reduction is split."""
    sketch, tiles = sketch_of(document), np.zeros((LOOPS, LEVELS))
    for row, tile in zip(tiles, anchor_tiles(document)[::-1], strict=False):
        factors = tile.factors[::-1][:LEVELS]
        row[: len(factors)] = np.log2(factors)
    level = -1 if sketch.write_level is None else sketch.write_level
    return np.array([*tiles.ravel(), np.log2(1 + unrolled(document)), level, sketch.factored])
