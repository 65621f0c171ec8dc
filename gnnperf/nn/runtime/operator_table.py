"""Measured operators as tables: one row is one operator on one GPU."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch
from numpy.typing import NDArray

from gnnperf.devices import DeviceSpec, known_device
from gnnperf.documents import read_parquet
from gnnperf.errors import InputError, first_line
from gnnperf.frontends.operators import parse_operators, sizes_of
from gnnperf.graph.vocabulary import PRECISIONS, check_precision, element_bytes
from gnnperf.graph.workload import Workload
from gnnperf.nn.runtime.columns import (
    FAMILIES,
    KINDS,
    Rows,
    UnknownPeakError,
    device_columns,
    gain,
    workload_columns,
)
from gnnperf.nn.runtime.launches import Launches

NEEDED = ("op_family", "op", "device", "B", "M", "N", "K", "H")
CONVOLUTION = ("conv_cin", "conv_cout", "conv_k", "conv_img", "conv_stride", "conv_pad")
"""What a row of the family "conv" has beside its batch B: channels in and out, sides of the kernel and of the
image, step, padding; and perhaps conv_groups."""
TWO_TENSORS = ("add", "sub", "mul", "div", "pow")
"""Elementwise operators of two tensors; "addu", ... take a number for the second."""
_KIND_OF = {
    "bmm": "contraction",
    "linear": "contraction",
    "conv": "contraction",
    "softmax": "rows",
    "layernorm": "rows",
    "elementwise": "map",
}
_PASSES = {"softmax": 3.0, "layernorm": 2.0}
DESCRIBED = ("attention", "fused_attention", "embedding", "pool", "reduction", "copy", "cat", "rmsnorm")
"""Families that are read as `parse_operators` does, one row at a time: their sizes are columns, too."""


@dataclass(frozen=True)
class OperatorTable:
    """n operators on GPUs.

    table: as it was read. columns: of the workloads, f64[n] each, as `workload_columns` gives them.
    device: name of each row's GPU. dtype: of each row, one of PRECISIONS. usable: rows of a known family with
    all sizes it needs; learned: those of families that models tell apart, which convolutions are not of.
    sequences: of rows that launch several kernels, one after another, their workloads; they are not usable.
    exchanged: grids of the kernels that ran say that the table's products sum over N, and have K columns: its
    workloads are those. variant: f64[n], which kernel ran, as `Launches.variant` has it.
    """

    table: pa.Table
    columns: Mapping[str, torch.Tensor]
    device: NDArray[np.str_]
    dtype: NDArray[np.str_]
    usable: NDArray[np.bool_]
    sequences: Mapping[int, tuple[Workload, ...]] = field(default_factory=dict)
    exchanged: bool = False
    variant: NDArray[np.float64] | None = None

    @property
    def learned(self) -> NDArray[np.bool_]:
        return self.usable & (self.columns["family"].numpy() >= 0)

    def rows(self, devices: Mapping[str, DeviceSpec], chosen: NDArray[np.bool_] | None = None) -> Rows:
        """Measured rows (column latency_ms) on known GPUs, among `chosen`. Raises InputError."""
        latency = self.latency_ms()
        keep = self.usable & np.isfinite(latency) & (latency > 0)
        keep &= True if chosen is None else chosen
        columns = {name: values[keep] for name, values in self.columns.items()}
        columns |= self.device_numbers(devices, keep)
        if self.variant is not None:
            columns["variant"] = torch.from_numpy(self.variant[keep])
        code = np.unique(self.device, return_inverse=True)[1]
        return Rows(columns, torch.from_numpy(latency[keep] * 1e-3), torch.from_numpy(code[keep]))

    def latency_ms(self) -> NDArray[np.float64]:
        """What was measured, NaN where nothing was. Raises InputError where the table has no such column."""
        if "latency_ms" not in self.table.column_names:
            raise InputError("expected a column latency_ms of measured milliseconds, got none")
        return _numbers(self.table["latency_ms"], "column latency_ms")

    def device_numbers(
        self, devices: Mapping[str, DeviceSpec], chosen: NDArray[np.bool_]
    ) -> dict[str, torch.Tensor]:
        """Columns of the devices of the chosen rows. Raises InputError for an unknown device, or a dtype that
        is not known of one."""
        names, code = np.unique(self.device[chosen], return_inverse=True)
        numbers, gains = [], np.ones(int(chosen.sum()))
        kinds, dtypes = self.columns["kind"].numpy()[chosen], self.dtype[chosen]
        for name in names:
            device = known_device(str(name), devices)
            numbers.append(device_columns(device))
            for kind, dtype in itertools.product(range(len(KINDS)), np.unique(dtypes[dtypes != "fp32"])):
                mine = (names[code] == name) & (kinds == kind) & (dtypes == dtype)
                if mine.any():
                    gains[mine] = gain(device, str(dtype), KINDS[kind])
        keys = numbers[0] if numbers else {}
        index = torch.from_numpy(code)
        found = {key: torch.tensor([n[key] for n in numbers], dtype=torch.float64)[index] for key in keys}
        return {**found, "gain": torch.from_numpy(gains)} if "element_bytes" in self.columns else found

    def unknown_peaks(self, device: DeviceSpec, chosen: NDArray[np.bool_]) -> dict[int, str]:
        """Of chosen rows, which are on one GPU, those in a dtype that it is not known to have, and what is to
        be said of each."""

        @functools.cache
        def refused(dtype: str, kind: str) -> str:
            try:
                gain(device, dtype, kind)
            except UnknownPeakError as error:
                return str(error)
            return ""

        found, own = dict[int, str](), self.columns["kind"].long().tolist()
        for row in np.flatnonzero(chosen & (self.dtype != "fp32")).tolist():
            launched: list[str] = [w.kind for w in self.sequences.get(row, ())] or [KINDS[own[row]]]
            if said := next(filter(None, (refused(str(self.dtype[row]), kind) for kind in launched)), ""):
                found[row] = said
        return found

    def texts(self, name: str) -> NDArray[np.str_]:
        """A column of texts. Raises InputError where there is none."""
        if name not in self.table.column_names:
            raise InputError(f"expected a column {name!r}, got {', '.join(self.table.column_names)}")
        return _texts(self.table[name], f"column {name}")


def read_operators(path: Path) -> OperatorTable:
    """Read a Parquet or CSV file with the columns op_family, op, device, B, M, N, K and H, and perhaps dtype,
    which is fp32 elsewhere. Raises InputError."""
    return operator_table(read_table(path), str(path))


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A table of a Parquet file, or of a file.csv. Raises InputError where it is none, or lacks a column."""
    if path.suffix == ".csv":
        return read_csv(path)
    try:
        return read_parquet(path, columns)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot read {path} as Parquet: {first_line(error)}") from None


def read_csv(path: Path) -> pa.Table:
    """A table with a line of names. Raises InputError where the file is none."""
    try:
        table = pyarrow.csv.read_csv(path)
        table.column_names  # noqa: B018  (they may be no text)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise InputError(f"cannot read {path} as CSV: {first_line(error)}") from None
    return table


def operator_table(table: pa.Table, origin: str) -> OperatorTable:
    """The operators of a table; `origin` names it in messages. Raises InputError."""
    if missing := [name for name in NEEDED if name not in table.column_names]:
        raise InputError(f"{origin}: expected a column {missing[0]!r}; needed: {', '.join(NEEDED)}")
    text = {n: _texts(table[n], f"{origin}: column {n}") for n in ("op_family", "op", "device")}
    size = {n: _numbers(table[n], f"{origin}: column {n}") for n in "BMNKH"}
    family, dtype = text["op_family"], np.full(len(table), "fp32")
    if "dtype" in table.column_names:
        given = _texts(table["dtype"], f"{origin}: column dtype")
        dtype = np.where(given == "", "fp32", given)
    stored = {name: PRECISIONS[check_precision(str(name), f"{origin}: column dtype")] for name in set(dtype)}
    size_of = np.array([float(element_bytes(stored[name])) for name in dtype])
    linear, convolution = family == "linear", family == "conv"
    product = np.isin(family, ("bmm", "linear", "conv"))
    batch, inputs = np.where(linear, 1.0, size["B"]), np.full(len(table), np.nan)
    m, n, k = size["M"], size["N"], size["K"]
    try:
        seen = Launches.of(table)
    except pa.ArrowException as error:
        raise InputError(f"{origin}: columns of launches: {first_line(error)}") from None
    exchanged = seen is not None and seen.fit(m, k) > seen.fit(m, n)
    if exchanged:
        n, k = k, n
    if convolution.any():
        groups, as_product, images = _convolutions(table, origin, size["B"])
        batch, m, n, k = (
            np.where(convolution, a, b) for a, b in zip((groups, *as_product), (batch, m, n, k), strict=True)
        )
        inputs = np.where(convolution, images, np.nan)
    inputs = np.where(np.isnan(inputs), batch * m * k, inputs)
    elements = size["B"] * size["H"]
    pointwise = family == "elementwise"
    usable = product & np.all([side > 0 for side in (batch, m, n, k)], axis=0)
    usable |= np.isin(family, FAMILIES[2:]) & (size["B"] > 0) & (size["H"] > 0)
    tensors = np.where(pointwise & np.isin(text["op"], TWO_TENSORS), 2.0, 1.0)
    rows = np.where(pointwise, elements, size["B"])
    # Depthwise: see `Convolution.workload`.
    depthwise = convolution & (batch > 1) & (n == 1)
    columns = {
        "flops": np.where(product, 2 * batch * m * n * k, elements * np.where(pointwise, 1.0, 7.0)),
        "read_bytes": size_of * np.where(product, inputs + batch * k * n, elements * tensors),
        "written_bytes": size_of * np.where(product, batch * m * n, elements),
        "batch": np.where(product, batch, 1.0),
        "m": np.where(product, m, 1.0),
        "n": np.where(product, n, 1.0),
        "k": np.where(product, k, 1.0),
        "rows": np.where(product, 1.0, rows),
        "columns": np.where(product | pointwise, 1.0, size["H"]),
        "passes": np.array([_PASSES.get(name, 1.0) for name in family]),
        "kind": np.array([float(KINDS.index(_KIND_OF.get(name, "map"))) for name in family]),
        "family": np.array([float(FAMILIES.index(name)) if name in FAMILIES else -1.0 for name in family]),
    }
    sequences: dict[int, tuple[Workload, ...]] = {}
    single: dict[int, Workload] = {}
    for row, workloads in _described(table, origin, family, dtype).items():
        if len(workloads) == 1:
            (single[row],) = workloads
        else:
            sequences[row] = workloads
    at = list(single)
    usable[at] = True
    for name, values in workload_columns(list(single.values())).items():
        columns[name][at] = values.numpy()
    usable &= np.isfinite(columns["flops"])
    if (dtype != "fp32").any():
        columns["element_bytes"] = size_of
    for name, value in {
        "batch": 1.0,
        "m": 1.0,
        "n": 1.0,
        "k": 1.0,
        "kind": float(KINDS.index("map")),
    }.items():
        columns[name] = np.where(depthwise, value, columns[name])
    columns["rows"] = np.where(depthwise, batch * m, columns["rows"])
    tensors_of = {name: torch.from_numpy(np.nan_to_num(values, nan=1.0)) for name, values in columns.items()}
    variant = np.full(len(table), -1.0) if seen is None else seen.variant(batch)
    return OperatorTable(table, tensors_of, text["device"], dtype, usable, sequences, exchanged, variant)


def _described(
    table: pa.Table, origin: str, family: NDArray[np.str_], dtype: NDArray[np.str_]
) -> dict[int, tuple[Workload, ...]]:
    """What rows of DESCRIBED launch; without those that lack a size. Raises InputError."""
    rows = np.flatnonzero(np.isin(family, DESCRIBED))
    forms = {str(name): sizes_of(str(name)) for name in np.unique(family[rows])}
    names = {name for form in forms.values() for sizes in form for name in sizes} & {*table.column_names}
    given = {name: _numbers(table[name], f"{origin}: column {name}") for name in sorted(names)}

    @functools.cache
    def launched(text: str) -> tuple[Workload, ...]:
        return tuple(operator.workload() for operator in parse_operators(text))

    result = {}
    for row in rows.tolist():
        needed, optional = forms[str(family[row])]
        sizes = {n: given[n][row] for n in (*needed, *optional) if n in given and np.isfinite(given[n][row])}
        if sizes.keys() >= {*needed}:
            written = ",".join(f"{name}={value:.0f}" for name, value in sizes.items())
            try:
                result[row] = launched(f"{family[row]}:{written},dtype={dtype[row]}")
            except InputError as error:
                raise InputError(f"{origin}: row {row}: {error}") from None
    return result


def _convolutions(
    table: pa.Table, origin: str, images: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], ...], NDArray[np.float64]]:
    """Of rows that are convolutions: groups, (m, n, k) of the product of each, and elements of the
    padded input that are read. Raises InputError."""
    if missing := [name for name in CONVOLUTION if name not in table.column_names]:
        raise InputError(
            f"{origin}: expected a column {missing[0]!r} for rows of the family conv; they need B and "
            f"{', '.join(CONVOLUTION)}"
        )
    channels, filters, side, image, step, padding = (
        _numbers(table[name], f"{origin}: column {name}") for name in CONVOLUTION
    )
    groups = np.ones_like(channels)
    if "conv_groups" in table.column_names:
        given = _numbers(table["conv_groups"], f"{origin}: column conv_groups")
        groups = np.where(np.isnan(given), 1.0, given)
    out = np.maximum((image + 2 * padding - side) // step + 1, 0.0)
    reached = (out - 1) * step + side
    as_product = images * out**2, filters / groups, channels / groups * side**2
    return groups, as_product, images * channels * reached**2


def _numbers(column: pa.ChunkedArray, what: str) -> NDArray[np.float64]:
    """NaN where there is none. Raises InputError."""
    try:
        return np.asarray(pa.compute.fill_null(column.cast(pa.float64()), np.nan))
    except pa.ArrowException as error:
        raise InputError(f"{what}: expected numbers: {first_line(error)}") from None


def _texts(column: pa.ChunkedArray, what: str) -> NDArray[np.str_]:
    """Empty where there is none. Raises InputError."""
    try:
        return np.asarray(column.cast(pa.string()).fill_null("").to_pylist(), dtype=str)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{what}: expected texts: {first_line(error)}") from None
