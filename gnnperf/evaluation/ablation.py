"""`gnnperf eval ablation`: the released way to rank schedules beside the same without one part, replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.metrics import geometric_mean, per_group
from gnnperf.evaluation.replay import Answer, Folders, replay_all
from gnnperf.evaluation.scores import Scores
from gnnperf.evaluation.transfer import KS, OURS, ReplaySettings
from gnnperf.training import Corpus

WITHOUT: Mapping[str, str] = {
    OURS: "nothing",
    "ours without profile": "dynamic profiles",
    "regression encoder": "learning from pairs: an encoder trained by regression, and distance",
    "boosted trees": "the graph network: trees on flat features of nest and recipe",
    "flat features": "the graph network and learning: distance of flat features",
    "fixed order": "the nest: the same schedules for all",
}
"""Row -> what it lacks."""
POLICIES = ("ours", "regression", "trees", "flat", "constant")
"""That answer with these rows."""
RESAMPLES = 10_000


def evaluate_ablation(
    folders: Folders,
    corpus: Corpus,
    settings: ReplaySettings,
    advance: Callable[[int, str], None] = lambda _steps, _doing: None,
) -> BenchmarkResult:
    """Replay POLICIES on every nest and make the table. See `evaluate_transfer`."""
    answers = replay_all(folders, settings.tasks(corpus), settings.workers, advance)
    rows = [*compare(corpus, answers)]
    figures = {f"efficiency_at_{row['k']}": row["efficiency"] for row in rows if row["policy"] == OURS}
    for row in rows:
        if row["policy"] != OURS and row["k"] == 3:
            figures[f"{row['policy']}, share of ours at 3"] = row["of_ours"]
    figures["nests"], figures["families"] = len(corpus.nests), len(corpus.families)
    return BenchmarkResult("ablation", figures, rows, settings.describe(folders, corpus))


def compare(corpus: Corpus, answers: Sequence[Answer]) -> Iterator[dict[str, Any]]:
    """A row per policy and number of candidates: efficiency, and its share of ours, family by family. low,
    high: ends of 95% intervals over families, drawn anew with replacement.

    Args:
        corpus: that was replayed.
        answers: to every nest of it, once per seed, for each row of the table.
    """
    for k in KS:
        of = {
            row: _by_family(Scores.of(corpus, [answer for answer in answers if answer.row == row], k))
            for row in WITHOUT
        }
        for row, without in WITHOUT.items():
            efficiency, low, high = _mean_interval(of[row])
            share, share_low, share_high = _mean_interval(of[row] - of[OURS])
            yield {
                "policy": row, "without": without, "k": k, "efficiency": efficiency, "low": low, "high": high,
                "of_ours": share, "of_ours_low": share_low, "of_ours_high": share_high,
            }  # fmt: skip


def _by_family(scores: Scores) -> Float[NDArray, " families"]:
    """ln of the geometric mean of efficiency over the nests of each family and over seeds."""
    means = [per_group(geometric_mean, scores.families, row) for row in scores.efficiency]
    return np.mean([[np.log(of[family]) for family in sorted(of)] for of in means], axis=0)


def _mean_interval(logs: Float[NDArray, " families"]) -> tuple[float, float, float]:
    """exp of the mean, and the ends of its 95% interval."""
    drawn = np.random.default_rng(0).integers(len(logs), size=(RESAMPLES, len(logs)))
    low, high = np.quantile(logs[drawn].mean(1), (0.025, 0.975))
    return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))
