"""Train the released bundle: encoder, schedule store, calibration.

python scripts/train_release.py -c configs/models/first.yaml -o checkpoints/loop-nests
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gnnperf.nn import load_bundle
from gnnperf.retrieval.release import GOOD_EFFICIENCY, build_store, calibrate, replay, save_calibration
from gnnperf.training import Corpus, load_corpus, train

K = 3


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
    output: Path = arguments.output
    for name in ("weights.pt", "metadata.json"):
        output.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run.bundle_folder / name, output / name)
    bundle = load_bundle(output)
    # Neighbours come from training families only; the test families decide nothing.
    replays = {
        split: replay(corpus, bundle, settings[f"{split}_families"], K, reference=_training(corpus, settings))
        for split in ("validation", "test")
    }
    calibration = calibrate(replays["validation"], K)
    save_calibration(output, calibration, replays["validation"])
    shutil.rmtree(output / "store", ignore_errors=True)
    build_store(corpus, bundle, output / "store", "CPU of the corpus")
    print(f"{len(corpus.nests)} nests, {corpus.measurement_count} measurements, encoder {bundle.encoder_id}")
    for split, replayed in replays.items():
        efficiency = np.array([r.efficiency for r in replayed])
        near = efficiency[[r.distance <= calibration.max_distance for r in replayed]]
        print(
            f"{split} families, {len(replayed)} nests: efficiency@{K} {_geometric_mean(efficiency):.3f} "
            f"(geometric mean); {len(near)} within the trusted distance of {calibration.max_distance:.3f}, "
            f"{np.mean(near >= GOOD_EFFICIENCY):.0%} of these at {GOOD_EFFICIENCY} or better"
        )


def _geometric_mean(values: np.ndarray) -> float:
    return float(np.exp(np.log(values).mean()))


def _training(corpus: Corpus, settings: Mapping[str, Any]) -> set[str]:
    return set(corpus.families) - {*settings["validation_families"], *settings["test_families"]}


if __name__ == "__main__":
    main()
