"""`gnnperf train release loop-nests`: encoder, head, confidence and schedule store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gnnperf.corpus.reader import read_corpus
from gnnperf.errors import InputError
from gnnperf.evaluation.ablation.table import embedding_figures, network_figures
from gnnperf.evaluation.confidence import learn_confidence
from gnnperf.evaluation.release import Progress, Trained
from gnnperf.evaluation.replay import Folders, replay_all
from gnnperf.evaluation.row_log import RowLog
from gnnperf.evaluation.transfer import FOLDS, KS, OURS, ReplaySettings, tabulate
from gnnperf.retrieval.from_corpus import fill_store
from gnnperf.store import Store
from gnnperf.training import bundle_of, fit_all
from gnnperf.training.code import code_digest
from gnnperf.training.refit import QUICK

COMPARED = ("ours", "perceptron", "constant")
"""Policies that are replayed: what is released, the same without the network, and the orders that know
nothing of the nest."""


def train_loop_nests(
    corpora: Sequence[Path],
    seed: int,
    workers: int,
    anyway: bool,
    quick: bool,
    unfinished: Path,
    progress: Progress,
) -> Trained:
    """Hold every family out in turn, for the figures and the confidence; then train on all families.

    corpora: folders of measured nests, of three families or more. workers: processes. anyway: also where the
    network does not help. quick: train briefly. unfinished: folder for what every fold gives: interrupted,
    the same call goes on. Raises InputError.
    """
    folders = Folders(corpora)
    measured = folders.load()
    folds = min(FOLDS, len(measured.families))
    settings = ReplaySettings(folds=folds, policies=COMPARED, seed=seed, quick=quick)
    tasks = settings.tasks(measured)
    unfinished.mkdir(parents=True, exist_ok=True)
    made_with = {"corpus": measured.digest, "seed": seed, "quick": quick, "code": code_digest()}
    log = RowLog(unfinished, made_with)
    with progress("holding families out", len(tasks)) as advance:
        answers = replay_all(folders, tasks, workers, advance, log)
    figures, rows = tabulate(measured, answers)
    worth = network_figures(measured, answers)
    if worth["nests_ratio_at_1_low"] <= 1.0 and not anyway:
        raise InputError(
            "expected a network that helps on held-out families, got "
            f"{worth['nests_ratio_at_1']:.3f} of what is reached without it at one candidate (95% interval "
            f"{worth['nests_ratio_at_1_low']:.3f} to {worth['nests_ratio_at_1_high']:.3f}); collect more, or "
            "give --anyway"
        )
    figures = {**figures, **worth, **embedding_figures(measured, answers)}
    with progress("training on all families", 1) as advance:
        bundle = bundle_of(*fit_all(measured, seed, **(QUICK if quick else {})), figures, seed)
        advance(1, "")
    confidence = learn_confidence(measured, [answer for answer in answers if answer.row == OURS])

    def fill(folder: Path) -> None:
        store = Store.open(folder, create=True)
        for path in corpora:
            fill_store(read_corpus(path), bundle, store)

    return Trained(
        replace(bundle, calibration={"confidence": confidence.to_dict()}),
        [row for row in rows if row["subset"] == "all" and row["k"] in KS],
        fill,
    )
