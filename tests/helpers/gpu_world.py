"""Measured configurations of tunable kernels on GPUs, made up: runtimes are what physics estimates, by a
factor that depends on the configuration alone, so that one GPU says much about another."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from gnnperf.devices import load_device
from gnnperf.frontends.gpu_kernels import configurations_of, find_description, physical_features, plan

GPUS = ("A100", "A4000", "RTX 3090", "TITAN RTX")
KERNELS = ("gemm", "pnpoly")


def rows(
    kernels: tuple[str, ...] = KERNELS, gpus: tuple[str, ...] = GPUS, count: int = 150
) -> list[dict[str, Any]]:
    """Rows as the file of measurements has them; the first configuration of every table failed."""
    found = []
    for kernel in kernels:
        description = find_description(kernel)
        space = configurations_of(description, limit=5000)
        chosen = random.Random(0).sample(space, count)
        planned = plan(description, chosen)
        factor = 1.0 + 0.5 * np.random.default_rng(1).random(count)
        for gpu in gpus:
            runtime = 1e3 * physical_features(planned, load_device(gpu))[0]["estimate_s"] * factor
            found += [
                {
                    "kernel": kernel, "space": f"{kernel}_made_up", "device": gpu, "time_ms": float(t),
                    "params": json.dumps({**c, "clock": 1500}), "valid": i > 0,
                }
                for i, (c, t) in enumerate(zip(chosen, runtime, strict=True))
            ]  # fmt: skip
    return found


def write(path: Path, table: list[dict[str, Any]]) -> Path:
    """The rows as a Parquet file; returns its path."""
    pyarrow.parquet.write_table(pa.Table.from_pylist(table), path)
    return path
