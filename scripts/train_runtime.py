"""Train the released runtime head: constants of physics, a small network, intervals.

python scripts/train_runtime.py -c configs/models/gpu_runtime.yaml -d DATA -o checkpoints/gpu-runtime

DATA is a folder with gpu_operators.parquet (measured operators; columns as `gnnperf predict --table` takes
them, and split, latency_ms). Some ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from gnnperf.errors import GnnperfError, InputError
from gnnperf.nn import Provenance, save_checkpoint
from gnnperf.nn.runtime.operator_table import read_operators
from gnnperf.training.leave_one_out import fit_head, left_out, test_or_train
from gnnperf.training.runtime import FitConfig


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-c", "--config", type=Path, default=Path("configs/models/gpu_runtime.yaml"))
    parser.add_argument("-d", "--data", type=Path, default=os.environ.get("GNNPERF_DATA"), metavar="DIR")
    parser.add_argument("-o", "--output", type=Path, default=Path("checkpoints/gpu-runtime"))
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    arguments = parser.parse_args()
    try:
        _train(arguments)
    except GnnperfError as error:
        sys.exit(f"train_runtime.py: {error}")


def _train(arguments: argparse.Namespace) -> None:
    if arguments.data is None:
        raise InputError("expected a folder of measurements: give --data, or set GNNPERF_DATA")
    config = yaml.safe_load(arguments.config.read_text())
    path = arguments.data / "gpu_operators.parquet"
    measured = read_operators(path)
    keep = measured.usable & ~left_out(measured, config["left_out"])
    rows = measured.rows({}, keep)
    split = measured.texts("split")[keep]
    head = fit_head(
        rows,
        fit_on=np.isin(split, config["splits"]),
        judge_on=test_or_train(rows, split),
        seeds=config["seeds"],
        config=FitConfig(**config["fit"]),
        workers=arguments.workers,
        advance=lambda _, what: print(what, file=sys.stderr),
    )
    corpus = {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "rows": dict(sorted(Counter(measured.device[keep].tolist()).items())),
        "left_out": config["left_out"],
    }
    head = replace(head, provenance=Provenance(corpus, seeds=config["seeds"]))
    save_checkpoint(arguments.output, head)
    for family, (half, eighty, most) in head.calibration.widths.items():
        print(f"{family}: half-widths of 50, 80, 95% intervals x{np.exp(half):.2f}, x{np.exp(eighty):.2f}, "
              f"x{np.exp(most):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
