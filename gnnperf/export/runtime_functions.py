"""The runtime head for GPUs as a function of plain tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gnnperf.devices import list_devices
from gnnperf.errors import InputError
from gnnperf.export.functions import Function, TensorSpec
from gnnperf.nn.runtime import Columns, RuntimeHead, RuntimeModel, device_columns
from gnnperf.nn.runtime.columns import FAMILIES, KINDS, LIBRARIES, assumptions
from gnnperf.nn.runtime.head import FARTHEST
from gnnperf.nn.runtime.model import LEVELS, PARTS, device_span, part_of

WORKLOAD: tuple[tuple[str, str], ...] = (
    ("kind", "index into kinds"), ("family", "index into families; -1: none of them"), ("flops", "FLOP"),
    ("read_bytes", "bytes"), ("written_bytes", "bytes"), ("batch", "products"), ("m", "rows"),
    ("n", "columns"), ("k", "elements"), ("rows", "rows"), ("columns", "elements"), ("passes", "passes"),
)  # fmt: skip
"""Columns of a workload (see `gnnperf.graph.workload.Workload`), with their units."""
DEVICE: tuple[tuple[str, str], ...] = (
    ("bandwidth", "bytes/s"), ("cores", "cores"), ("clock", "Hz"), ("l1", "bytes per core"), ("l2", "bytes"),
    ("peak", "FLOP/s"),
    ("matrix_peak", "FLOP/s"), ("threads", "threads per core"), ("power", "W"), ("process", "nm"),
    ("gddr", "0 or 1"), ("amd", "0 or 1"), ("library", "index into libraries"), ("single_issue", "0 or 1"),
)  # fmt: skip
"""Columns of a device (see `gnnperf.nn.runtime.device_columns`), with their units."""
SPANS = ("peak", "bandwidth", "balance", "cache", "process", "power")
"""By what GPUs are told apart; the last is power over peak and process."""


class _Model(nn.Module):
    """A `RuntimeModel` without branches: every formula is worked out for every row, and one is taken."""

    def __init__(self, model: RuntimeModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Columns) -> Tensor:
        """ln(seconds), f64[n]."""
        part = part_of(x)
        result = torch.zeros_like(x["flops"])
        for index, name in enumerate(PARTS):
            result = torch.where(part == index, self.model.part(name, x, {}), result)
        return result


class _Head(RuntimeHead):
    """A head that can be traced: inference mode would not let the tracer see its constants."""

    def log_runtime(self, x: Columns) -> Tensor:
        return torch.stack([model(x) for model in self.models]).mean(0)


class Runtime(nn.Module):
    """Runtime, intervals, roofline, and how unlike the GPU is to those that were measured."""

    def __init__(self, head: RuntimeHead) -> None:
        super().__init__()
        self.models = nn.ModuleList(_Model(model) for model in head.models)
        self._head = _Head(tuple(self.models), head.calibration)  # type: ignore[arg-type]

    def forward(self, workload: Tensor, device: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """f64[n, W], f64[n, D] -> runtime_s, lower_s, upper_s, roofline_s, outside."""
        x = {name: workload[:, i] for i, (name, _) in enumerate(WORKLOAD)}
        x |= {name: device[:, i] for i, (name, _) in enumerate(DEVICE)}
        found = self._head.predict_columns(x)
        lower, upper = (torch.stack([found.bounds_s[level][i] for level in LEVELS], 1) for i in (0, 1))
        return found.runtime_s, lower, upper, found.roofline_s, self._outside(x)

    def _outside(self, x: Columns) -> Tensor:
        spans, columns = device_span(x), []
        for name in SPANS:
            low, high = self._head.calibration.devices.get(name, (-math.inf, math.inf))
            columns.append(torch.clamp(torch.maximum(low - spans[name], spans[name] - high), min=0))
        return torch.nan_to_num(torch.stack(columns, 1))  # of a power that is not known


def runtime_functions(head: RuntimeHead) -> tuple[Function, ...]:
    """`runtime` of a head that is not adapted to one GPU."""
    levels = ", ".join(f"{level:g}" for level in LEVELS)
    outputs = (
        TensorSpec("runtime_s", "float64", ("n",), "s", "median"),
        TensorSpec("lower_s", "float64", ("n", len(LEVELS)), "s", f"of intervals at levels {levels}"),
        TensorSpec("upper_s", "float64", ("n", len(LEVELS)), "s", f"of intervals at levels {levels}"),
        TensorSpec("roofline_s", "float64", ("n",), "s", "what the datasheet allows"),
        TensorSpec(
            "outside", "float64", ("n", len(SPANS)), "doublings", "away from the GPUs measured", SPANS
        ),
    )  # fmt: skip
    device = next(iter(_gpus().values()))["columns"]
    workload = dict.fromkeys((name for name, _ in WORKLOAD), 64.0)
    rows = [
        {**workload, "kind": float(kind), "family": float(family)}
        for kind, family in ((0, 0), (1, 2), (2, 4))
    ]
    example = (
        torch.tensor([[row[name] for name, _ in WORKLOAD] for row in rows], dtype=torch.float64),
        torch.tensor([[device[name] for name, _ in DEVICE]] * len(rows), dtype=torch.float64),
    )
    return (Function("runtime", Runtime(head), runtime_inputs(), outputs, example, traced=True),)


def runtime_inputs() -> tuple[TensorSpec, ...]:
    """Of `runtime`, as this version makes them."""
    units = [", ".join(f"{name}: {unit}" for name, unit in columns) for columns in (WORKLOAD, DEVICE)]
    names = [tuple(name for name, _ in columns) for columns in (WORKLOAD, DEVICE)]
    return (
        TensorSpec("workload", "float64", ("n", len(WORKLOAD)), units[0], "what is to run", names[0]),
        TensorSpec("device", "float64", ("n", len(DEVICE)), units[1], "what it runs on", names[1]),
    )


def runtime_metadata(head: RuntimeHead) -> dict[str, Any]:
    """What a client needs beside the tensors: codes, levels, limits, and the GPUs of the catalog."""
    return {
        "kinds": list(KINDS),
        "families": list(FAMILIES),
        "libraries": list(LIBRARIES),
        "measured_families": sorted(head.calibration.widths),
        "levels": list(LEVELS),
        "farthest_doublings": FARTHEST,
        "devices": _gpus(),
    }


def _gpus() -> dict[str, dict[str, Any]]:
    """Of the catalog, those whose runtimes can be predicted."""
    found: dict[str, dict[str, Any]] = {}
    for name, device in list_devices().items():
        try:
            columns: Mapping[str, float] = device_columns(device)
        except InputError:  # a CPU, or a GPU without a number that is needed
            continue
        found[name] = {
            "name": device.name,
            "aliases": list(device.aliases),
            "columns": dict(columns),
            "remarks": assumptions(device),
        }
    return found
