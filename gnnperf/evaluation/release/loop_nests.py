"""`gnnperf train release loop-nests`: encoder, retrieval head, calibration and schedule store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gnnperf.evaluation.confidence import learn_confidence
from gnnperf.evaluation.corpus_store import build_store, farthest_trusted
from gnnperf.evaluation.release import Progress, Trained
from gnnperf.evaluation.replay import Folders, replay_all
from gnnperf.evaluation.transfer import KS, OURS, ReplaySettings, tabulate
from gnnperf.retrieval import Calibration
from gnnperf.training import bundle_of, fit_all

FOLDS = 10
COMPARED = ("ours", "constant")
"""Policies that are replayed: what is released, and the orders that know nothing of the nest."""


def train_loop_nests(corpus: Path, seed: int, workers: int, progress: Progress) -> Trained:
    """Hold every family out in turn, for the figures and the calibration; then train on all families.

    corpus: folder of measured nests, of three families or more. workers: processes. Raises InputError.
    """
    folders = Folders(corpus)
    measured = folders.load()
    settings = ReplaySettings(folds=min(FOLDS, len(measured.families)), policies=COMPARED, seed=seed)
    tasks = settings.tasks(measured)
    with progress("holding families out", len(tasks)) as advance:
        answers = replay_all(folders, tasks, workers, advance)
    figures, rows = tabulate(measured, answers)
    bundle = bundle_of(*fit_all(measured, seed), figures, seed)
    confidence = learn_confidence(measured, [answer for answer in answers if answer.row == OURS])
    calibration = Calibration(farthest_trusted(measured, bundle), confidence)
    return Trained(
        replace(bundle, calibration=calibration.to_dict()),
        [row for row in rows if row["subset"] == "all" and row["k"] in KS],
        lambda store: build_store(measured, bundle, store, "CPU of the corpus"),
    )
