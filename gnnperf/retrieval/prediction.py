"""Runtimes of kernels, models and whole tables on GPUs, with a trained runtime head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch

from gnnperf.devices import DeviceSpec, find_device, known_device
from gnnperf.errors import InputError
from gnnperf.graph.workload import Workload
from gnnperf.nn.runtime import Columns, RuntimeHead
from gnnperf.nn.runtime.columns import assumptions, is_measured, on_device
from gnnperf.nn.runtime.model import LEVELS
from gnnperf.nn.runtime.operator_table import OperatorTable, operator_table

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


def predict_kernel(head: RuntimeHead, workloads: Sequence[Workload], device: DeviceSpec) -> KernelPrediction:
    """Predict workloads that run one after another. Raises InputError for what is no GPU."""
    for workload in workloads:
        if (objection := head.objection(workload, device)) is not None:
            return KernelPrediction(device, objection=objection)
    x = on_device(workloads, device)
    found = head.predict_columns(x)
    remarks = assumptions(device)
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


def predict_table(
    head: RuntimeHead,
    operators: OperatorTable,
    devices: Mapping[str, DeviceSpec],
    calibrate: Path | None = None,
) -> pa.Table:
    """The table with predicted_ms, lo_ms and hi_ms (the 80% interval) added; null where an operator is of no
    known family or lacks a size.

    calibrate: runs, as of `calibrate_from`; the rows of every GPU are predicted with its own. Raises
    InputError for an unknown device, and where no run is of a GPU of the table.
    """
    count = len(operators.device)
    result = np.full((3, count), np.nan)
    heads = {"": head}
    if calibrate is not None:
        heads = {str(name): head for name in np.unique(operators.device[operators.usable])}
        for name in heads:
            device = known_device(name, devices)
            heads[name] = calibrate_from(head, calibrate, device, devices)
        if all(own is head for own in heads.values()):
            raise InputError(f"{calibrate}: expected runs on {' or '.join(heads)}, got none; leave it out")
    for name, own in heads.items():
        rows = np.flatnonzero(operators.usable & (True if calibrate is None else operators.device == name))
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK]
            chosen = np.zeros(count, dtype=bool)
            chosen[part] = True
            x = {column: values[torch.from_numpy(part)] for column, values in operators.columns.items()}
            found = own.predict_columns({**x, **operators.device_numbers(devices, chosen)})
            low, high = found.bounds_s[LEVELS[1]]
            result[:, part] = 1e3 * torch.stack([found.runtime_s, low, high]).numpy()
    table = operators.table
    for name, values in zip(("predicted_ms", "lo_ms", "hi_ms"), result, strict=True):
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, pa.array(values, mask=np.isnan(values)))
    return table


def calibrate_from(
    head: RuntimeHead, path: Path, device: DeviceSpec, devices: Mapping[str, DeviceSpec]
) -> RuntimeHead:
    """Adapt a head to one GPU by the rows of a CSV file that name it (columns as of tables, and latency_ms).

    Unchanged where no row does. Raises InputError when the file is not that.
    """
    try:
        table = pa.csv.read_csv(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {path} as CSV: {str(error).splitlines()[0]}") from None
    for name in ("B", "M", "N", "K", "H", "op"):
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table)))
    operators = operator_table(table, str(path))
    mine = np.array([find_device(str(name), devices) == device for name in operators.device], dtype=bool)
    if not mine.any():
        return head
    measured = operators.rows(devices, mine)
    if not len(measured):
        raise InputError(f"{path}: no row of {device.name} has a known operator, its sizes and latency_ms")
    columns: Columns = measured.columns
    return head.calibrated(columns, measured.seconds)
