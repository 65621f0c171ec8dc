"""`gnnperf eval gpu-models`: whole models on GPUs that were left out, from their operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gnnperf.devices import find_device
from gnnperf.errors import InputError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.gpu.operators import LEFT_OUT
from gnnperf.evaluation.metrics import mape
from gnnperf.nn.runtime import RuntimeHead, roofline_s
from gnnperf.nn.runtime.columns import device_columns
from gnnperf.nn.runtime.model import RuntimeCalibration
from gnnperf.nn.runtime.model_table import COMPILED, ModelGraph, read_graphs
from gnnperf.nn.runtime.operator_table import read_operators, read_table
from gnnperf.training.leave_one_out import left_out
from gnnperf.training.runtime import DEFAULT, RuntimeFitSettings, fit_model

WHOLE = ("device", "desc", "mode", "num_layer", "measured_e2e_ms")
"""Columns of whole models."""
_FILES = ("gpu_operators", "gpu_models_end_to_end", "gpu_models_opgraphs")


@dataclass(frozen=True)
class ModelSettings:
    """fit_on: splits of the operators that the models in use see, of the other GPUs."""

    data: Path
    fit_on: tuple[str, ...] = ("train", "test")
    seeds: tuple[int, ...] = (0, 1, 2)
    config: RuntimeFitSettings = DEFAULT


def evaluate_models(settings: ModelSettings, advance: Callable[[int, str], None]) -> BenchmarkResult:
    """Fit without every GPU, add up the operators of every model, compare with the measured whole.

    Raises InputError when the data is not there.
    """
    paths = {name: settings.data / f"{name}.parquet" for name in _FILES}
    if missing := [path for path in paths.values() if not path.is_file()]:
        raise InputError(f"expected measurements in {missing[0]}; give --data, or set GNNPERF_DATA")
    measured = read_operators(paths["gpu_operators"])
    keep = measured.usable & ~left_out(measured, LEFT_OUT) & np.isin(measured.texts("split"), settings.fit_on)
    rows, names = measured.rows({}, keep), measured.device[keep]
    graphs = read_graphs(paths["gpu_models_opgraphs"])
    wholes = read_table(paths["gpu_models_end_to_end"], WHOLE).to_pylist()
    wholes = [row for row in wholes if _is_known(row, graphs)]
    table: list[dict[str, Any]] = []
    for name in sorted({row["device"] for row in wholes}):
        device = find_device(name, {})
        if device is None:
            raise InputError(f"no device {name!r} in the catalog")
        others = np.array([find_device(str(other), {}) != device for other in np.unique(names)])
        chosen = torch.from_numpy(np.flatnonzero(others[np.unique(names, return_inverse=True)[1]]))
        models = []
        for seed in settings.seeds:
            models.append(fit_model(rows.take(chosen), seed, settings.config))
            advance(1, name)
        head = RuntimeHead(tuple(models), RuntimeCalibration({}))
        numbers = device_columns(device)
        for row in wholes:
            if row["device"] == name:
                table.append(_row(row, graphs[row["desc"]], head, numbers))
    shown = {"fit_on": list(settings.fit_on), "seeds": list(settings.seeds), "left_out": list(LEFT_OUT)}
    return BenchmarkResult("gpu-models", _figures(table), table, shown)


def _is_known(row: Mapping[str, Any], graphs: Mapping[str, Any]) -> bool:
    """Whether a whole model was measured, and has a graph whose repetitions are known."""
    measured = row["measured_e2e_ms"]
    return (
        measured is not None and not math.isnan(measured) and row["desc"] in graphs and bool(row["num_layer"])
    )


def _row(
    whole: Mapping[str, Any], graph: ModelGraph, head: RuntimeHead, numbers: Mapping[str, float]
) -> dict[str, Any]:
    """Predicted and measured milliseconds of one model on one GPU."""
    columns, times = graph.columns(whole["num_layer"])
    some = columns["flops"]
    x = {**columns, **{key: torch.full_like(some, value) for key, value in numbers.items()}}
    alone = head.log_runtime(x).exp().numpy()
    return {
        "device": whole["device"],
        "model": whole["desc"],
        "mode": whole["mode"],
        "fused": whole["desc"].endswith(COMPILED),
        "measured_ms": whole["measured_e2e_ms"],
        "predicted_ms": head.sequence_s(x, torch.from_numpy(times)) * 1e3,
        "sum_ms": float((alone * times).sum() * 1e3),
        "roofline_ms": float((roofline_s(x).numpy() * times).sum() * 1e3),
    }


def _figures(table: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    def error(rows: Sequence[Mapping[str, Any]], column: str = "predicted_ms") -> float:
        return mape([r[column] for r in rows], [r["measured_ms"] for r in rows]) if rows else math.nan

    def unseen(rows: Sequence[Mapping[str, Any]], column: str = "predicted_ms") -> float:
        names = sorted({row["device"] for row in rows})
        by_device = [error([r for r in rows if r["device"] == name], column) for name in names]
        return float(np.mean(by_device)) if by_device else math.nan

    inference = [row for row in table if row["mode"] == "inf"]
    return {
        "l4_inference_mape": error([row for row in inference if row["device"].endswith("L4")]),
        "mean_unseen_mape": unseen(inference),
        "training_unseen_mape": unseen([row for row in table if row["mode"] == "train"]),
        "sum_of_operators_mape": unseen(inference, "sum_ms"),
        "roofline_mape": unseen(inference, "roofline_ms"),
    }
