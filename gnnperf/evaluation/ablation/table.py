"""From answers to the table of the ablation: the whole, and the same without one part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gnnperf.evaluation.metrics import mean_interval
from gnnperf.evaluation.rankers import PARTS
from gnnperf.evaluation.replay import Answer
from gnnperf.evaluation.scores import Scores
from gnnperf.evaluation.transfer import KS, OURS
from gnnperf.training import Corpus, CorpusNest

WITHOUT_NETWORK = ("without network", "perceptron", "boosted trees")
"""Rows that know no graph network; the network has to be better than the best of those that there are."""
WITHOUT: Mapping[str, str] = {
    OURS: "nothing",
    "neighbours alone": "the head: what neighbours measured, by the embedding's distance",
    "nearest nest": "the head and all neighbours but one",
    "without contrastive loss": "learning which nests are alike",
    "without message passing": "edges: every node by itself, then the readout",
    "untrained encoder": "learning the encoder: its weights are as drawn",
    "without network": "the graph: a perceptron on the same numbers, neighbours by flat features",
    "perceptron": "the graph and neighbours",
    "boosted trees": "the graph and neighbours: trees on the same numbers",
    "flat features": "the graph and learning: neighbours by flat features",
    "portfolio": "the nest: the same schedules for all",
    "oracle": "errors",
}
"""Row -> what it lacks."""
POLICIES = ("ours", *PARTS, "perceptron", "trees", "flat", "constant", "oracle")
"""That answer with these rows."""


def network_figures(corpus: Corpus, answers: Sequence[Answer], ks: Sequence[int] = KS) -> dict[str, float]:
    """What the network is worth: efficiency with it, and at one candidate over the best of what knows none,
    with the ends of the 95% interval over families; the same of the nests with several statements, which only
    edges tell apart from a heap of them, where there are some."""
    full = {k: _by_family(corpus, answers, OURS, k) for k in ks}
    figures = {f"nests_full_at_{k}": float(np.exp(logs.mean())) for k, logs in full.items()}
    figures |= _over_without_network(corpus, answers, "")
    several = [at for at, nest in enumerate(corpus.nests) if _statements(nest) > 1]
    if several:
        place = {position: at for at, position in enumerate(several)}
        of_several = [replace(answer, nest=place[answer.nest]) for answer in answers if answer.nest in place]
        part = replace(corpus, nests=tuple(corpus.nests[at] for at in several))
        figures |= _over_without_network(part, of_several, "_several_statements")
        figures["nests_several_statements"] = len(several)
    return figures


def _statements(nest: CorpusNest) -> int:
    count = nest.graph.values.get("statements", 0)
    return count if isinstance(count, int) else 0


def _over_without_network(corpus: Corpus, answers: Sequence[Answer], of: str) -> dict[str, float]:
    full = _by_family(corpus, answers, OURS, 1)
    there = {answer.row for answer in answers}
    others = [_by_family(corpus, answers, row, 1) for row in WITHOUT_NETWORK if row in there]
    best = max(others, key=lambda logs: float(logs.mean()))
    ratio, low, high = np.exp(mean_interval(full - best)).tolist()
    return {
        f"nests_without_network_at_1{of}": float(np.exp(best.mean())),
        f"nests_ratio_at_1{of}": ratio,
        f"nests_ratio_at_1_low{of}": low,
        f"nests_ratio_at_1_high{of}": high,
    }


def embedding_figures(corpus: Corpus, answers: Sequence[Answer]) -> dict[str, float]:
    """What the embedding is worth by itself. spearman: mean over nests of the rank correlation of distance
    and regret. nearest_best: the best schedule of the nearest nest that was measured, of the best known."""
    found = [a.spearman for a in answers if a.row == OURS and a.spearman is not None]
    nearest = _by_family(corpus, answers, "nearest nest", 1)
    return {
        "spearman": float(np.mean(found)) if found else math.nan,
        "nearest_best": float(np.exp(nearest.mean())),
    }


def compare(corpus: Corpus, answers: Sequence[Answer], ks: Sequence[int] = KS) -> Iterator[dict[str, Any]]:
    """A row per policy and number of candidates: efficiency, and its share of ours, family by family. low,
    high: ends of 95% intervals over families, drawn anew with replacement.

    Args:
        corpus: of the nests that were asked for, and their best known schedules.
        answers: to every nest of it, once per seed, for each row of the table that there is.
        ks: numbers of candidates.
    """
    there = {answer.row for answer in answers}
    for k in ks:
        of = {row: _by_family(corpus, answers, row, k) for row in WITHOUT if row in there}
        for row in of:
            efficiency, low, high = np.exp(mean_interval(of[row])).tolist()
            share, share_low, share_high = np.exp(mean_interval(of[row] - of[OURS])).tolist()
            yield {
                "model": "loop-nests", "held_out": "family", "policy": row, "without": WITHOUT[row], "k": k,
                "efficiency": efficiency, "low": low, "high": high,
                "of_ours": share, "of_ours_low": share_low, "of_ours_high": share_high,
            }  # fmt: skip


def _by_family(corpus: Corpus, answers: Sequence[Answer], row: str, k: int) -> np.ndarray:
    """ln efficiency of each family, in sorted order."""
    of_row = [answer for answer in answers if answer.row == row]
    return np.array([value for _, value in sorted(Scores.of(corpus, of_row, k).log_by_family().items())])
