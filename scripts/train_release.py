"""Train the released bundle: encoder, retrieval head, schedule store, calibration.

First every family is held out in turn, in folds: that gives the figures, and how sure retrieval may be of
what it measures. Then one training on all families gives what is released.

python scripts/train_release.py -o checkpoints/loop-nests
python scripts/train_release.py --corpus corpus -o checkpoint
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from gnnperf.errors import InputError
from gnnperf.evaluation.confidence import learn_confidence
from gnnperf.evaluation.corpus_store import build_store, farthest_trusted
from gnnperf.evaluation.replay import Folders, replay_all
from gnnperf.evaluation.transfer import CONFIDENT_K, KS, OURS, ReplaySettings, tabulate
from gnnperf.nn import save_checkpoint
from gnnperf.retrieval import Calibration
from gnnperf.training import bundle_of, fit_all

SEED = 0
FOLDS = 10
COMPARED = ("ours", "constant")
"""Policies that are replayed: what is released, and the orders that know nothing of the nest."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=Path("checkpoints/corpus/first"))
    parser.add_argument("-o", "--output", type=Path, default=Path("checkpoints/loop-nests"))
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each (default 2)")
    arguments = parser.parse_args()
    folders = Folders(arguments.corpus)
    corpus = folders.load()
    settings = ReplaySettings(folds=min(FOLDS, len(corpus.families)), policies=COMPARED, seed=SEED)
    tasks = settings.tasks(corpus)
    done = 0

    def advance(steps: int, _doing: str) -> None:
        nonlocal done
        done += steps
        print(f"\rholding families out: {done} of {len(tasks)}", end="", file=sys.stderr, flush=True)

    answers = replay_all(folders, tasks, arguments.workers, advance)
    print(file=sys.stderr)
    figures, rows = tabulate(corpus, answers)
    module, data = fit_all(corpus, SEED)
    output: Path = arguments.output
    released = bundle_of(module, data, figures, SEED)
    confidence = learn_confidence(corpus, [answer for answer in answers if answer.row == OURS])
    calibration = Calibration(farthest_trusted(corpus, released), confidence)
    released = replace(released, calibration=calibration.to_dict())
    save_checkpoint(output, released, lambda store: build_store(corpus, released, store, "CPU of the corpus"))

    size = f"{len(corpus.nests)} nests of {len(corpus.families)} families"
    print(f"{size}, {corpus.measurement_count} measurements, encoder {released.encoder_id}")
    for row in rows:
        if row["subset"] == "all" and row["k"] in KS:
            print(f"{row['policy']:>20}, best of {row['k']:>2}: {row['efficiency']:.3f} of the best known")
    print(
        f"confident of {figures['confident_share']:.0%} of held-out nests after {CONFIDENT_K} candidates, "
        f"rightly of {figures['confident_within_10pct']:.0%} of these"
    )


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"train_release: {error}")
