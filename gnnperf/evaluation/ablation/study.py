"""The two ways to make the table: from what a corpus has measured, or from what is measured now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from gnnperf.corpus.config import NestConfig
from gnnperf.devices import describe_host
from gnnperf.evaluation.ablation.measure import asked_of, entries_of, measure_asked, measured_answers
from gnnperf.evaluation.ablation.propose import chosen_nests, propose_all, recorded_proposals
from gnnperf.evaluation.ablation.table import compare, embedding_figures, network_figures
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.replay import Answer, Folders, replay_all
from gnnperf.evaluation.transfer import KS, ReplaySettings
from gnnperf.training import Corpus, load_corpus

MEASURED_KS = (1, 3, 5)
"""Candidates of each contender that are measured."""
Progress = Callable[[str, int], AbstractContextManager[Callable[[int, str], None]]]


def evaluate_ablation(
    folders: Folders,
    corpus: Corpus,
    settings: ReplaySettings,
    advance: Callable[[int, str], None] = lambda _steps, _doing: None,
) -> BenchmarkResult:
    """Replay POLICIES on every nest and make the table. See `evaluate_transfer`."""
    answers = replay_all(folders, settings.tasks(corpus), settings.workers, advance)
    return _result(corpus, answers, {**settings.describe(folders, corpus), "measured": False})


@dataclass(frozen=True)
class Measuring:
    """How to measure what contenders propose.

    Attributes:
        folder: of proposals and measurements; a folder of an interrupted run is gone on with.
        configs: of the collections that the corpora come from.
        per_family: nests of each family.
        warn: is told what was left out.
    """

    folder: Path
    configs: Sequence[NestConfig]
    per_family: int
    warn: Callable[[str], None]


def measure_ablation(
    folders: Folders, corpus: Corpus, settings: ReplaySettings, measuring: Measuring, progress: Progress
) -> BenchmarkResult:
    """Let POLICIES choose freely for some held-out nests of every family, measure it, and make the table.

    Raises InputError: the folder is of other settings or another machine, or nothing could be measured.
    """
    folder, tasks = measuring.folder, settings.tasks(corpus)
    folder.mkdir(parents=True, exist_ok=True)
    nests = chosen_nests(corpus, measuring.per_family, settings.seed)
    # Folders that do not say that they were made in a hurry were not.
    made_with = {
        "corpus_digest": corpus.digest, "policies": list(settings.policies), "folds": settings.folds,
        "per_family": measuring.per_family, "candidates": max(MEASURED_KS), "seed": settings.seed,
        "machine": describe_host().fingerprint, **({"quick": True} if settings.quick else {}),
    }  # fmt: skip
    with progress("proposing", len(tasks)) as advance:
        proposals = propose_all(
            folder, folders, tasks, nests, max(MEASURED_KS), settings.workers, made_with, advance
        )
    rounds = asked_of(corpus, proposals)
    entries = sum(len(entries_of(c, corpus, asked)) for asked, c in product(rounds, measuring.configs))
    with progress("measuring", entries) as advance:
        measure_asked(folder / "measured", measuring.configs, corpus, rounds, advance, measuring.warn)
    measured, answers = measured_answers(folder / "measured", corpus, proposals)
    about = {**settings.describe(folders, corpus), **made_with, "measured": True, "device": measured.device}
    return _result(measured, answers, about, MEASURED_KS)


def recorded_ablation(folder: Path) -> BenchmarkResult:
    """The table of what an earlier `measure_ablation` chose and measured, whatever has become of its corpora.

    Raises InputError: there is no such thing in the folder.
    """
    made_with, proposals = recorded_proposals(folder)
    measured, answers = measured_answers(folder / "measured", load_corpus(folder / "measured"), proposals)
    about = {**made_with, "measured": True, "device": measured.device}
    return _result(measured, answers, about, MEASURED_KS)


def _result(
    corpus: Corpus, answers: Sequence[Answer], about: Mapping[str, Any], ks: Sequence[int] = KS
) -> BenchmarkResult:
    figures = {
        **network_figures(corpus, answers, ks),
        **embedding_figures(corpus, answers),
        "nests": len(corpus.nests),
        "families": len(corpus.families),
    }
    return BenchmarkResult("ablation", figures, [*compare(corpus, answers, ks)], about)
