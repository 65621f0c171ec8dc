"""`gnnperf train release gpu-runtime`: the runtime head, from measured operators of several GPUs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from gnnperf.errors import InputError
from gnnperf.evaluation.release import Progress, Trained
from gnnperf.nn import ModelProvenance
from gnnperf.nn.runtime.model import LEVELS
from gnnperf.nn.runtime.operator_table import read_operators
from gnnperf.training.leave_one_out import fit_head, left_out, test_or_train
from gnnperf.training.runtime import RuntimeFitSettings

FILE = "gpu_operators.parquet"


@dataclass(frozen=True)
class RuntimeConfig:
    """seeds: of the models that are averaged. splits: of the source to fit on. left_out: pairs of device and
    family that are not learned from. fit: of each model."""

    seeds: Sequence[int] = (0,)
    splits: Sequence[str] = ("train",)
    left_out: Sequence[Mapping[str, str]] = ()
    fit: RuntimeFitSettings = field(default_factory=RuntimeFitSettings)

    @staticmethod
    def read(path: Path) -> RuntimeConfig:
        """Of a YAML file. Raises InputError where it is not that."""
        try:
            given: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
            return RuntimeConfig(**{**given, "fit": RuntimeFitSettings(**given.get("fit", {}))})
        except (OSError, yaml.YAMLError, AttributeError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"cannot read {path}: {reason}; see configs/models/gpu_runtime.yaml") from None


def train_gpu_runtime(data: Path, config: RuntimeConfig, workers: int, progress: Progress) -> Trained:
    """Fit the models to all GPUs, and widths of intervals by leaving out every GPU in turn.

    data: Parquet file; columns as `gnnperf predict --table` takes them, and split, latency_ms. workers:
    processes. The rows say by which factor a runtime may lie above or below. Raises InputError.
    """
    measured = read_operators(data)
    keep = measured.learned & ~left_out(measured, config.left_out)
    rows = measured.rows({}, keep)
    split = measured.texts("split")[keep]
    with progress("fitting", len(np.unique(rows.device.numpy())) + len(config.seeds)) as advance:
        head = fit_head(
            rows,
            fit_on=np.isin(split, config.splits),
            judge_on=test_or_train(rows, split),
            seeds=config.seeds,
            config=config.fit,
            workers=workers,
            advance=advance,
        )
    corpus = {
        "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
        "rows": dict(sorted(Counter(measured.device[keep].tolist()).items())),
        "left_out": config.left_out,
    }
    columns = [f"factor_{level:.0%}" for level in LEVELS]
    factors = [
        {"family": family, **dict(zip(columns, np.exp(widths).tolist(), strict=True))}
        for family, widths in head.calibration.widths.items()
    ]
    return Trained(replace(head, provenance=ModelProvenance(corpus, seeds=config.seeds)), factors)
