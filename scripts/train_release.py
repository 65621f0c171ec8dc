"""Train the released bundle: encoder, schedule store, calibration.

python scripts/train_release.py -c configs/models/first.yaml -o checkpoints/loop-nests
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import yaml

from gnnperf.nn import load_bundle
from gnnperf.retrieval.release import build_store, calibrate, replay, save_calibration
from gnnperf.training import load_corpus, train

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
    held_out = {*settings["validation_families"], *settings["test_families"]}
    replayed = replay(corpus, bundle, held_out, K)
    calibration = calibrate(replayed, K)
    save_calibration(output, calibration, replayed)
    shutil.rmtree(output / "store", ignore_errors=True)
    build_store(corpus, bundle, output / "store", "CPU of the corpus")
    efficiency = np.array([r.efficiency for r in replayed])
    print(
        f"{len(corpus.nests)} nests, {corpus.measurement_count} measurements; held-out families: "
        f"{len(replayed)} nests, efficiency@{K} geometric mean {np.exp(np.log(efficiency).mean()):.3f}; "
        f"trusted distance {calibration.max_distance:.3f} at confidence {calibration.confidence:.2f}"
    )


if __name__ == "__main__":
    main()
