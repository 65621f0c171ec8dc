"""`gnnperf eval gpu-models`: whole models on GPUs that were left out, from their operators."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from gnnperf.devices import find_device
from gnnperf.errors import InputError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.gpu.operators import LEFT_OUT
from gnnperf.evaluation.metrics import mape
from gnnperf.nn.runtime import RuntimeHead, roofline_s
from gnnperf.nn.runtime.columns import device_columns
from gnnperf.nn.runtime.model import RuntimeCalibration
from gnnperf.nn.runtime.operator_table import operator_table, read_operators
from gnnperf.training.leave_one_out import left_out
from gnnperf.training.runtime import DEFAULT, RuntimeFitSettings, fit_model

_FILES = ("gpu_operators", "gpu_models_end_to_end", "gpu_models_opgraphs")
Graph = list[tuple[list[dict[str, Any]], bool]]
"""Of every node, its operators, and whether it is one of a repeated layer."""
COMPILED = "-fusion"
"""Ends the names of models that were compiled."""
_FAMILY = {"Linear": "linear", "BMM": "bmm", "VECsoftmax": "softmax", "VECln": "layernorm"}


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
    graphs = _graphs(pq.read_table(paths["gpu_models_opgraphs"]).to_pylist())
    wholes = [
        row for row in pq.read_table(paths["gpu_models_end_to_end"]).to_pylist() if _is_known(row, graphs)
    ]
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


def _graphs(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Graph]:
    """By model, the operators of every node, and whether it is one of a repeated layer."""
    graphs: dict[str, Graph] = {}
    for node in nodes:
        if node["OpName"] == "getitem":  # views: nothing is launched
            continue
        inputs = ast.literal_eval(node["InputShapes"])
        listed = [op for column in ("FwOps", "BwOps", "AccOps") for op in ast.literal_eval(node[column])]
        fused = node["OpName"] == "fused"
        operators = [
            row for op in (_fused(listed) if fused else listed) if (row := _operator(op, inputs)) is not None
        ]
        if operators:
            graphs.setdefault(node["desc"], []).append((operators, bool(node["in_repeated_layer"])))
    return {name: _merged(graph) if name.endswith(COMPILED) else graph for name, graph in graphs.items()}


def _merged(graph: Graph) -> Graph:
    """What a compiler makes of a chain: pointwise operators run inside of the softmax or normalisation that
    comes right after them, and goes over the same elements."""
    kept: Graph = []
    for operators, again in graph:
        size = operators[0]["B"] and operators[0]["H"] and operators[0]["B"] * operators[0]["H"]
        if operators[0]["op_family"] in ("softmax", "layernorm"):
            while kept and kept[-1][0][0]["op_family"] == "elementwise":
                (before, *_), _ = kept[-1]
                if before["B"] * before["H"] != size:
                    break
                kept.pop()
        kept.append((operators, again))
    return kept


def _fused(listed: list[Any]) -> list[Any]:
    """Of operators that run as one kernel, the one that reads and writes most stands for all."""
    sizes = [(math.prod(op[1]) if op[0] != "MEM" else math.prod(op[1][-1]), i) for i, op in enumerate(listed)]
    reducing = [op for op in listed if op[0] in ("VECsoftmax", "VECln")]
    return reducing[:1] or ([listed[max(sizes)[1]]] if sizes else [])


def _operator(op: Any, inputs: Sequence[tuple[int, ...]]) -> dict[str, Any] | None:
    """One row of an operator table; None for what moves nothing or goes over a network. An elementwise one of
    which a single input is as large as the result takes a number, or a vector, for the second."""
    kind, shape = op[0], op[1]
    row: dict[str, Any] = dict.fromkeys("BMNKH")
    if kind == "Linear":
        m, k, n = shape
        return {**row, "op_family": "linear", "op": "linear", "M": m, "N": n, "K": k}
    if kind == "BMM":
        b, m, k, n = shape
        return {**row, "op_family": "bmm", "op": "bmm", "B": b, "M": m, "N": n, "K": k}
    if kind in _FAMILY:
        return {**row, "op_family": _FAMILY[kind], "op": kind[3:], "B": shape[0], "H": shape[1]}
    if kind.startswith("VEC"):
        single = sum(math.prod(i) == math.prod(shape) for i in inputs) == 1
        name = f"{kind[3:]}u" if single else kind[3:]
        return {**row, "op_family": "elementwise", "op": name, "B": shape[0], "H": shape[1]}
    if kind == "MEM":
        elements = math.prod(shape[-1])
        return (
            {**row, "op_family": "elementwise", "op": "copy", "B": 1, "H": elements} if elements > 1 else None
        )
    return None


def _row(
    whole: Mapping[str, Any], graph: Sequence[tuple[list[dict[str, Any]], bool]], head: RuntimeHead,
    numbers: Mapping[str, float],
) -> dict[str, Any]:  # fmt: skip
    """Predicted and measured milliseconds of one model on one GPU."""
    operators = [{**op, "device": ""} for listed, _ in graph for op in listed]
    times = np.array(
        [whole["num_layer"] if again else 1 for listed, again in graph for _ in listed], dtype=float
    )
    columns = operator_table(pa.Table.from_pylist(operators), whole["desc"]).columns
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

    inference = [row for row in table if row["mode"] == "inf"]
    by_device = [
        [r for r in inference if r["device"] == name] for name in sorted({r["device"] for r in inference})
    ]
    return {
        "l4_inference_mape": error([row for row in inference if row["device"].endswith("L4")]),
        "mean_unseen_mape": float(np.mean([error(rows) for rows in by_device])),
        "mean_unseen_training_mape": error([row for row in table if row["mode"] == "train"]),
        "sum_of_operators_mape": float(np.mean([error(rows, "sum_ms") for rows in by_device])),
        "roofline_mape": float(np.mean([error(rows, "roofline_ms") for rows in by_device])),
    }
