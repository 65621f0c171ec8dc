"""`gnnperf train release loop-nests`: encoder, retrieval head, calibration and schedule store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gnnperf.corpus.reader import read_corpus
from gnnperf.evaluation.confidence import learn_confidence
from gnnperf.evaluation.release import Progress, Trained
from gnnperf.evaluation.replay import Folders, replay_all
from gnnperf.evaluation.transfer import KS, OURS, ReplaySettings, tabulate
from gnnperf.retrieval import Calibration
from gnnperf.retrieval.from_corpus import farthest_trusted, fill_store
from gnnperf.store import Store
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
    graphs, families = [nest.graph for nest in measured.nests], [nest.family for nest in measured.nests]
    calibration = Calibration(farthest_trusted(graphs, families, bundle), confidence)
    return Trained(
        replace(bundle, calibration=calibration.to_dict()),
        [row for row in rows if row["subset"] == "all" and row["k"] in KS],
        lambda store: fill_store(read_corpus(corpus), bundle, Store.open(store, create=True)),
    )
