"""Runtimes of kernels, models and whole tables on GPUs, with a trained runtime head."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from gnnperf.devices import DeviceSpec, find_device, known_device
from gnnperf.errors import InputError
from gnnperf.graph.workload import Workload
from gnnperf.nn.runtime import Columns, RuntimeHead
from gnnperf.nn.runtime.columns import FAMILIES, assumptions, device_columns, is_measured, on_device
from gnnperf.nn.runtime.model import LEVELS
from gnnperf.nn.runtime.model_table import ModelGraph
from gnnperf.nn.runtime.operator_table import OperatorTable, operator_table, read_csv

ADDED = ("predicted_ms", "lo_ms", "hi_ms", "objection")
"""Columns that are added to a table."""
NO_OPERATOR = "no known family, or a size is missing"
SEVERAL = "they launch several kernels, and what each takes is not known"
CHUNK = 50_000
"""Rows of a table that are predicted at once."""


@dataclass(frozen=True)
class KernelPrediction:
    """What is said of a kernel, or of a model of several, on one GPU. Times in seconds.

    runtime_s: of several operators, as they run in a sequence; operators_s: of each as it runs alone.
    intervals_s: nominal level -> (lower, upper); of several operators as wide as the sums of theirs, as if
    all were off in the same direction, as they are when a GPU is. remarks: in words, what was assumed.
    objection: in words, why nothing is said; the rest is None then.
    """

    device: DeviceSpec
    runtime_s: float | None = None
    roofline_s: float | None = None
    intervals_s: Mapping[float, tuple[float, float]] | None = None
    operators_s: tuple[float, ...] = ()
    remarks: tuple[str, ...] = ()
    objection: str | None = None


@dataclass(frozen=True)
class TablePrediction:
    """table: as it was, and with ADDED: milliseconds, their 80% interval, and, where there are none, why, in
    words. remarks: in words, what was assumed, and of how many rows nothing is said."""

    table: pa.Table
    remarks: tuple[str, ...]


def predict_kernel(head: RuntimeHead, workloads: Sequence[Workload], device: DeviceSpec) -> KernelPrediction:
    """Predict workloads that run one after another. Raises InputError for what is no GPU."""
    for workload in workloads:
        if (objection := head.objection(workload, device)) is not None:
            return KernelPrediction(device, objection=objection)
    x = on_device(workloads, device)
    found = head.predict_columns(x)
    remarks = [*assumptions(device), *head.left_out]
    unmeasured = [w.dtype for w, known in zip(workloads, is_measured(x), strict=True) if not known]
    remarks += [f"{count} of the operators {said}" for said, count in dtype_remarks(unmeasured).items()]
    for name, count in Counter(w.family for w in workloads if head.is_unmeasured(w)).items():
        remarks.append(f"{count} of the operators are of a family that was not measured: {name or 'unknown'}")
    alone = float(found.runtime_s.sum())
    total = alone
    if len(workloads) > 1:
        total = head.sequence_s(x, torch.ones(len(workloads), dtype=torch.float64))
    bounds = {level: (float(low.sum()), float(high.sum())) for level, (low, high) in found.bounds_s.items()}
    return KernelPrediction(
        device,
        total,
        float(found.roofline_s.sum()),
        {level: (low * total / alone, high * total / alone) for level, (low, high) in bounds.items()},
        tuple(found.runtime_s.tolist()),
        tuple(remarks),
    )


def dtype_remarks(dtypes: Sequence[str]) -> dict[str, int]:
    """What is to be said of operators in dtypes that were not measured, and of how many."""
    return {
        f"are {dtype}, which was not measured: physics with the datasheet's peak, and wider intervals": count
        for dtype, count in Counter(dtypes).items()
    }


def _unlike(head: RuntimeHead, operators: OperatorTable, predicted: NDArray[np.bool_]) -> list[str]:
    """What is to be said of predicted rows that nothing like was measured of."""
    dtypes = operators.dtype[predicted]
    said = [f"{n} rows {what}" for what, n in dtype_remarks(dtypes[dtypes != "fp32"].tolist()).items()]
    if operators.exchanged:
        said.append("grids of the kernels that ran say that products sum over N, not K: read so")
    codes = operators.columns["family"].numpy()
    known = [code for code, name in enumerate(FAMILIES) if name in head.calibration.widths]
    families = operators.texts("op_family")[predicted & operators.usable & ~np.isin(codes, known)]
    for name, count in Counter(families.tolist()).items():
        said.append(
            f"{count} rows are of a family that was not measured, {name}: physics, and wider intervals"
        )
    return said


def predict_table(
    head: RuntimeHead,
    operators: OperatorTable,
    devices: Mapping[str, DeviceSpec],
    calibrate: Path | None = None,
) -> TablePrediction:
    """Predict the rows of a table.

    calibrate: runs, as of `calibrate_from`. Raises InputError for an unknown device, where no run is of a
    GPU of the table, and where something is to be said against all rows that are operators.
    """
    count = len(operators.device)
    result = np.full((3, count), np.nan)
    known = operators.usable.copy()
    known[list(operators.sequences)] = True
    objection = np.where(known, "", NO_OPERATOR).astype(object)
    named = {str(name): known_device(str(name), devices) for name in np.unique(operators.device[known])}
    heads = calibrated_heads(head, calibrate, named, devices)
    for name, own in heads.items():
        mine = known & (operators.device == name)
        objection[mine] = own.too_far(named[name]) or ""
        for row, why in operators.unknown_peaks(named[name], mine & (objection == "")).items():
            objection[row] = why
        rows = np.flatnonzero(operators.usable & mine & (objection == ""))
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            chosen = np.zeros(count, dtype=bool)
            chosen[part] = True
            x = {column: values[torch.from_numpy(part)] for column, values in operators.columns.items()}
            found = own.predict_columns({**x, **operators.device_numbers(devices, chosen)})
            low, high = found.bounds_s[LEVELS[1]]
            result[:, part] = 1e3 * torch.stack([found.runtime_s, low, high]).numpy()

    @functools.cache
    def in_sequence(workloads: tuple[Workload, ...], name: str) -> KernelPrediction:
        return predict_kernel(heads[name], workloads, named[name])

    for row, workloads in operators.sequences.items():
        if objection[row]:
            continue
        whole = in_sequence(workloads, str(operators.device[row]))
        objection[row] = whole.objection or ""
        if whole.runtime_s is not None and whole.intervals_s is not None:
            result[:, row] = 1e3 * np.array([whole.runtime_s, *whole.intervals_s[LEVELS[1]]])
    predicted = objection == ""
    if known.any() and not predicted.any():
        raise InputError(str(objection[known][0]))
    table = operators.table.select([name for name in operators.table.column_names if name not in ADDED])
    for name, times in zip(ADDED[:-1], result, strict=True):
        table = table.append_column(name, pa.array(times, mask=~predicted))
    table = table.append_column(ADDED[-1], pa.array(objection, pa.string(), mask=predicted))
    refused = Counter(objection[~predicted].tolist())
    said = [f"{n} rows have no prediction: {why}" for why, n in refused.items()]
    said += _left_out(heads)
    return TablePrediction(table, (*_unlike(head, operators, predicted), *said))


def predict_models(
    head: RuntimeHead,
    models: pa.Table,
    graphs: Mapping[str, ModelGraph],
    devices: Mapping[str, DeviceSpec],
    calibrate: Path | None = None,
) -> TablePrediction:
    """Predict the rows of a table of models (see `models_of`).

    Launches are hidden behind the kernels before, and the board's power limits the energy of the whole. With
    operators that run backwards, what is predicted is a step of training. Raises InputError as
    `predict_table` does.
    """
    result: list[tuple[float | None, float | None, float | None, str | None]] = []
    named = {str(name): known_device(str(name), devices) for name in set(models["device"].to_pylist())}
    heads = calibrated_heads(head, calibrate, named, devices)
    for row in models.select(["desc", "device", "num_layer"]).to_pylist():
        graph, own = graphs.get(row["desc"]), heads[str(row["device"])]
        objection = "has no graph" if graph is None else graph.objection
        if objection is None and (far := own.too_far(named[str(row["device"])])) is not None:
            objection = f"has no prediction: {far}"
        if objection is None and graph is not None and graph.repeats and not row["num_layer"]:
            objection = "has a repeated layer, and no num_layer"
        if graph is None or objection is not None:
            result.append((None, None, None, objection))
            continue
        columns, times = graph.columns(row["num_layer"] or 1)
        numbers = device_columns(named[str(row["device"])])
        x = {**columns, **{name: torch.full_like(columns["flops"], v) for name, v in numbers.items()}}
        found, often = own.predict_columns(x), torch.from_numpy(times)
        total, alone = own.sequence_s(x, often), float((found.runtime_s * often).sum())
        low, high = (float((bound * often).sum()) * total / alone for bound in found.bounds_s[LEVELS[1]])
        result.append((1e3 * total, 1e3 * low, 1e3 * high, None))
    kept = [name for name in models.column_names if name not in ADDED]
    table = models.select(kept)
    for name, values in zip(ADDED, zip(*result, strict=True), strict=True):
        kind = pa.string() if name == ADDED[-1] else pa.float64()
        table = table.append_column(name, pa.array(values, kind))
    rows = zip(models["desc"].to_pylist(), table[ADDED[-1]].to_pylist(), strict=True)
    said = sorted({f"{desc} {objection}" for desc, objection in rows if objection})
    return TablePrediction(table, (*said, *_left_out(heads)))


def calibrated_heads(
    head: RuntimeHead,
    path: Path | None,
    devices: Mapping[str, DeviceSpec],
    known: Mapping[str, DeviceSpec],
) -> dict[str, RuntimeHead]:
    """The head of every GPU, adapted by its own runs in a file, if there is one. known: GPUs by names that
    the file may use beside the catalog's. Raises InputError where no run is of any."""
    if path is None:
        return dict.fromkeys(devices, head)
    heads = {name: calibrate_from(head, path, device, known) for name, device in devices.items()}
    if all(own is head for own in heads.values()):
        raise no_runs(path, devices)
    return heads


def _left_out(heads: Mapping[str, RuntimeHead]) -> list[str]:
    """What is to be said of runs that heads were not adapted by, once of a GPU with several names."""
    return list(dict.fromkeys(words for own in heads.values() for words in own.left_out))


def no_runs(path: Path, devices: Iterable[str]) -> InputError:
    """Of a file that says nothing of any of these GPUs."""
    return InputError(f"{path}: expected runs on {' or '.join(devices)}, got none; leave it out")


def calibrate_from(
    head: RuntimeHead, path: Path, device: DeviceSpec, devices: Mapping[str, DeviceSpec]
) -> RuntimeHead:
    """Adapt a head to one GPU by the rows of a CSV file that name it (columns as of tables, and latency_ms).

    Unchanged where no row does; rows that it cannot learn from are left out, and said so. Raises InputError
    when the file is not that.
    """
    table = read_csv(path)
    for name in ("B", "M", "N", "K", "H", "op"):
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table)))
    operators = operator_table(table, str(path))
    mine = np.array([find_device(str(name), devices) == device for name in operators.device], dtype=bool)
    if not mine.any():
        return head
    latency = operators.latency_ms()[mine]
    if wrong := latency[~((latency > 0) & (latency < math.inf))].tolist():
        raise InputError(
            f"{path}: expected latency_ms above 0 in every row of {device.name}, got {wrong[0]:g}"
        )
    why = np.where(operators.usable, "", NO_OPERATOR).astype(object)
    why[list(operators.sequences)] = SEVERAL
    for row, words in operators.unknown_peaks(device, mine & (why == "")).items():
        why[row] = words
    reasons = Counter(why[mine & (why != "")].tolist())
    said = [f"{n} rows of {device.name} are left out: {words}" for words, n in reasons.items()]
    measured = operators.rows(devices, mine & (why == ""))
    if not len(measured):
        raise InputError(f"{path}: nothing to calibrate by: {'; '.join(said)}")
    columns: Columns = measured.columns
    adapted = head.calibrated(columns, measured.seconds)
    return replace(adapted, left_out=tuple(f"{path}: {words}" for words in said))
