"""Train the released bundle: encoder, retrieval head, schedule store, calibration.

Twice: without the families that the configuration holds out, which gives the figures, the calibration and the
number of epochs; then on all families, which gives what is released.

python scripts/train_release.py -c configs/models/first.yaml -o checkpoints/loop-nests
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import yaml

from gnnperf.nn import load_bundle
from gnnperf.retrieval.release import (
    GOOD_EFFICIENCY,
    build_store,
    calibrate,
    fixed_order,
    replay,
    save_calibration,
)
from gnnperf.training import export_bundle, fit_all, load_corpus, train

K = 3
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-c", "--config", type=Path, default=Path("configs/models/first.yaml"))
    parser.add_argument("-o", "--output", type=Path, default=Path("checkpoints/loop-nests"))
    arguments = parser.parse_args()
    settings = yaml.safe_load(arguments.config.read_text())["data"]
    corpus = load_corpus(settings["corpus"])
    run = train(["fit", "-c", str(arguments.config)])
    assert run.bundle_folder is not None
    bundle = load_bundle(run.bundle_folder)
    # Neighbours come from training families only; the test families decide nothing.
    families = {split: settings[f"{split}_families"] for split in ("validation", "test")}
    training = set(corpus.families) - {*families["validation"], *families["test"]}
    replays = {
        split: replay(corpus, bundle, names, K, reference=training) for split, names in families.items()
    }
    calibration = calibrate(replays["validation"], K)
    output: Path = arguments.output
    module, data = fit_all(corpus, SEED)
    released = export_bundle(module, data, output, run.figures, SEED)
    save_calibration(output, calibration, replays["validation"])
    shutil.rmtree(output / "store", ignore_errors=True)
    build_store(corpus, released, output / "store", "CPU of the corpus")
    size = f"{len(corpus.nests)} nests, {corpus.measurement_count} measurements"
    print(f"{size}, encoder {released.encoder_id}")
    for split, replayed in replays.items():
        efficiency = np.array([r.efficiency for r in replayed])
        near = efficiency[[r.distance <= calibration.max_distance for r in replayed]]
        print(
            f"{split} families, {len(replayed)} nests: efficiency@{K} {_geometric_mean(efficiency):.3f} "
            f"(geometric mean); {len(near)} within the trusted distance of {calibration.max_distance:.3f}, "
            f"{np.mean(near >= GOOD_EFFICIENCY):.0%} of these at {GOOD_EFFICIENCY} or better"
        )
        for k in (1, K):
            ours = [r.efficiency for r in replay(corpus, bundle, families[split], k, reference=training)]
            fixed = fixed_order(corpus, families[split], k, training)
            print(
                f"  best of {k}: {_geometric_mean(np.array(ours)):.3f}, with one fixed order of schedules "
                f"{_geometric_mean(np.array(fixed)):.3f}"
            )


def _geometric_mean(values: np.ndarray) -> float:
    return float(np.exp(np.log(values).mean()))


if __name__ == "__main__":
    main()
