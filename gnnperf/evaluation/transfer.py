"""`gnnperf eval transfer`: every policy on held-out nests, replayed from a corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import gnnperf
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.confidence import Trust
from gnnperf.evaluation.metrics import mean_interval
from gnnperf.evaluation.rankers import LEARNING, PARTS, POLICIES
from gnnperf.evaluation.replay import Answer, Folders, ReplayTask, replay_all
from gnnperf.evaluation.scores import ALL, Scores, table_row
from gnnperf.evaluation.splits import SplitName, make_folds
from gnnperf.training import Corpus, CorpusNest

if TYPE_CHECKING:
    from gnnperf.corpus.record import CorpusRecord

KS = (1, 3, 5, 10)
FOLDS = 5
ROWS = (
    "random",
    "best single",
    "fixed order",
    "portfolio",
    "exact lookup",
    "flat features",
    "boosted trees",
    "perceptron",
    "without network",
    *(f"nearest nest, {row}" for row, _ in PARTS.values()),
    "nearest nest",
    *(f"neighbours alone, {row}" for row, _ in PARTS.values()),
    "neighbours alone",
    *(row for row, _ in PARTS.values()),
    "ours",
    "oracle",
)
"""Of the table, in their order."""
OURS = "ours"
UNTRAINED, _ = PARTS["untrained"]
CONFIDENT, SUREST, FAMILY = "confident", "surest", "family"
"""Subsets of the nests: those that ours is confident of, those it is surest of, by family."""
CONFIDENT_K = 5
"""Candidates after which ours says whether it is confident: those that `gnnperf retrieve` measures."""
COMPARED_WITH = {
    "vs_best_single_at_3": "best single",
    "vs_fixed_order_at_3": "fixed order",
    "vs_portfolio_at_3": "portfolio",
    "vs_flat_features_at_3": "flat features",
    "vs_boosted_trees_at_3": "boosted trees",
    "vs_perceptron_at_3": "perceptron",
    "vs_without_network_at_3": "without network",
}
"""Figure -> the row whose efficiency at 3 ours is divided by."""


@dataclass(frozen=True)
class ReplaySettings:
    """How to replay. split, folds: see `make_folds`. policies: names out of POLICIES. seed: of the folds,
    and the first of `seeds` seeds of what is learned. workers: processes. quick: networks learn briefly."""

    split: SplitName = "family"
    folds: int = FOLDS
    policies: Sequence[str] = tuple(name for name in POLICIES if name not in PARTS)
    seed: int = 0
    seeds: int = 1
    workers: int = 2
    quick: bool = False

    def tasks(self, corpus: Corpus) -> list[ReplayTask]:
        """What has to be done, the longest tasks first: the workers then end together. InputError where
        the corpus cannot be split."""
        folds = make_folds(corpus.nests, self.split, self.folds, self.seed)
        tasks = []
        for policy in sorted(self.policies, key=list(POLICIES).index, reverse=True):
            for seed in self._seeds if policy in LEARNING else self._seeds[:1]:
                tasks += [ReplayTask(policy, fold, n, seed, self.quick) for n, fold in enumerate(folds)]
        return tasks

    @property
    def _seeds(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    def describe(self, folders: Folders, corpus: Corpus) -> dict[str, Any]:
        """What a result was made with and from."""
        folds = make_folds(corpus.nests, self.split, self.folds, self.seed)
        return {
            "corpora": list(folders.corpora),
            "judged_by": folders.trials,
            "corpus_digest": corpus.digest,
            "measurements": corpus.measurement_count,
            "device": corpus.device,
            "split": self.split,
            "quick": self.quick,
            "held_out": [sorted({self._group(corpus.nests[i]) for i in fold.queries}) for fold in folds],
            "seeds": list(self._seeds),
            "versions": {"gnnperf": gnnperf.__version__, "torch": torch.__version__},
        }

    def _group(self, nest: CorpusNest) -> str:
        if self.split == "family":
            return nest.family
        return " ".join([nest.kernel, *(f"{name}={value}" for name, value in nest.symbols.items())])


def evaluate_transfer(
    folders: Folders,
    corpus: Corpus,
    settings: ReplaySettings,
    advance: Callable[[int, str], None] = lambda _steps, _doing: None,
) -> BenchmarkResult:
    """Replay every policy on every nest that the answers come from, and make the table.

    Args:
        folders: of the corpus.
        corpus: the same, read.
        settings: how to replay.
        advance: called after each task of `settings.tasks`.
    """
    trials = folders.load_trials(corpus).measurements
    answers = replay_all(folders, settings.tasks(corpus), settings.workers, advance)
    figures, rows = tabulate(*judged_by(trials, corpus, answers))
    return BenchmarkResult("transfer", figures, rows, settings.describe(folders, corpus))


def judged_by(
    trials: Mapping[str, Mapping[str, CorpusRecord]], corpus: Corpus, answers: Sequence[Answer]
) -> tuple[Corpus, Sequence[Answer]]:
    """The nests of a corpus that `trials` measured, with these measurements, and the answers to them."""
    kept = [at for at, nest in enumerate(corpus.nests) if nest.digest in trials]
    position = {nest: at for at, nest in enumerate(kept)}
    judged = replace(corpus, nests=tuple(corpus.nests[at] for at in kept), measurements=trials)
    return judged, [replace(answer, nest=position[answer.nest]) for answer in answers]


def tabulate(corpus: Corpus, answers: Sequence[Answer]) -> tuple[dict[str, float], list[dict[str, object]]]:
    """The headline numbers, and the table: all nests; by confidence in ours; by family.

    Args:
        corpus: that was replayed.
        answers: to every nest of it, once per seed, for each row of the table.
    """
    by_row = {row: [answer for answer in answers if answer.row == row] for row in ROWS}
    scores = {(row, k): Scores.of(corpus, of_row, k) for row, of_row in by_row.items() if of_row for k in KS}
    trust = Trust.of(corpus, by_row[OURS], CONFIDENT_K) if by_row[OURS] else None
    rows = [*_rows(scores), *(_by_confidence(scores, trust) if trust else ()), *_by_family(scores)]
    return dict(_figures(scores, trust)), rows


Table = Mapping[tuple[str, int], Scores]
"""(row, k) -> scores."""


def _figures(scores: Table, trust: Trust | None) -> Iterator[tuple[str, float]]:
    """The headline numbers, of the rows that there are."""
    efficiency = {key: float(s.over_families().mean()) for key, s in scores.items()}
    if trust is not None:
        for k in KS:
            yield f"efficiency_at_{k}", efficiency[OURS, k]
        for figure, other in COMPARED_WITH.items():
            if (other, 3) in efficiency:
                yield figure, efficiency[OURS, 3] / efficiency[other, 3]
        sure = trust.good[trust.confident]
        yield "confident_within_10pct", float(sure.mean()) if sure.size else math.nan
        yield "confident_share", float(trust.confident.mean())
    for alone in ("nearest nest", "neighbours alone"):
        of = [scores.get((row, 1)) for row in (alone, f"{alone}, {UNTRAINED}")]
        if of[0] and of[1]:
            trained, drawn = (np.array([v for _, v in sorted(s.log_by_family().items())]) for s in of if s)
            ratio, low, high = np.exp(mean_interval(trained - drawn)).tolist()
            figure = f"{alone.replace(' ', '_')}_vs_untrained_at_1"
            yield from ((figure, ratio), (f"{figure}_low", low), (f"{figure}_high", high))
    families = next(iter(scores.values())).families
    yield "nests", len(families)
    yield "families", len(set(families))


def _rows(scores: Table) -> Iterator[dict[str, object]]:
    for (row, k), of_row in scores.items():
        yield table_row(row, k, ALL, of_row)


def _by_confidence(scores: Table, trust: Trust) -> Iterator[dict[str, object]]:
    """What ours is confident of, and the curve behind it: the surest tenth of the nests, two tenths, ..."""
    ours = scores[OURS, CONFIDENT_K]
    if trust.confident.any():
        yield table_row(OURS, CONFIDENT_K, CONFIDENT, ours.select(trust.confident))
    for tenth in range(1, 11):
        chosen = ours.select(trust.surest(tenth / 10))
        yield table_row(OURS, CONFIDENT_K, f"{SUREST} {tenth * 10}%", chosen)


def _by_family(scores: Table) -> Iterator[dict[str, object]]:
    for (row, k), of_row in scores.items():
        for family in sorted(set(of_row.families)):
            chosen = np.broadcast_to(np.asarray(of_row.families) == family, of_row.regret.shape)
            yield table_row(row, k, f"{FAMILY} {family}", of_row.select(chosen))
