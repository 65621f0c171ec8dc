"""Measured configurations of tunable kernels, one table per search space and GPU."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from gnnperf.devices import DeviceSpec, load_device
from gnnperf.documents import from_json, read_parquet
from gnnperf.errors import InputError, first_line
from gnnperf.frontends.gpu_kernels import (
    Description,
    Plan,
    find_description,
    list_descriptions,
    of_all_launches,
    physical_features,
    plan,
)
from gnnperf.frontends.gpu_kernels.kernel_tuner import read_kernel_tuner
from gnnperf.frontends.gpu_kernels.plan import integers

DATA_VARIABLE = "GNNPERF_DATA"
FILE = "tunable_kernels.parquet"
COLUMNS = ("kernel", "space", "device", "params", "time_ms", "valid")


@dataclass(frozen=True)
class Candidates:
    """n configurations of a kernel on a GPU, whether they were measured or not."""

    description: Description
    device: DeviceSpec
    configurations: Sequence[Mapping[str, int]]

    @cached_property
    def plan(self) -> Plan:
        return plan(self.description, self.configurations)

    @cached_property
    def launches(self) -> Sequence[Mapping[str, Float64[np.ndarray, " n"]]]:
        """`physical_features`."""
        return physical_features(self.plan, self.device)

    @cached_property
    def physics(self) -> Mapping[str, Float64[np.ndarray, " n"]]:
        """`of_all_launches`."""
        return of_all_launches(self.plan, self.launches)

    @cached_property
    def keys(self) -> list[tuple[int, ...]]:
        """Values of the parameters."""
        return list(zip(*(self.plan.values[p].tolist() for p in self.description.parameters), strict=True))

    @cached_property
    def identities(self) -> list[bytes]:
        """`Plan.identities` at the description's sizes, for looking up the same program elsewhere."""
        sizes = self.description.sizes
        if all((self.plan.values[name] == size).all() for name, size in sizes.items()):
            return self.plan.identities
        parameters = self.description.parameters
        return plan(self.description, [dict(zip(parameters, k, strict=True)) for k in self.keys]).identities

    @cached_property
    def programs(self) -> Int64[np.ndarray, " n"]:
        """Number of the program that a configuration is: of those with one number, all are the same."""
        number = {identity: i for i, identity in enumerate(dict.fromkeys(self.identities))}
        return np.array([number[identity] for identity in self.identities])

    def __len__(self) -> int:
        return len(self.configurations)


@dataclass(frozen=True)
class GpuTable(Candidates):
    """runtime_ms: NaN where a configuration failed. gpu: the name that the file has for the device."""

    space: str
    gpu: str
    runtime_ms: Float64[np.ndarray, " n"]

    @property
    def kernel(self) -> str:
        return self.description.name

    @property
    def ok(self) -> np.ndarray:
        """bool[n]: which have a runtime."""
        return np.isfinite(self.runtime_ms)

    @property
    def best_ms(self) -> float:
        return float(np.nanmin(self.runtime_ms))

    @property
    def efficiency(self) -> Float64[np.ndarray, " n"]:
        """Best runtime of the table / runtime; 0 for a configuration that failed."""
        return np.where(self.ok, self.best_ms / np.where(self.ok, self.runtime_ms, 1.0), 0.0)


def data_path(given: Path | None, file: str = FILE) -> Path:
    """The file of measurements: `given`, itself or the folder with it, else in $GNNPERF_DATA. InputError."""
    folder = given or (Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None)
    if folder is None:
        raise InputError(f"expected {file}: give --data, or set {DATA_VARIABLE} to its folder")
    path = folder / file if folder.is_dir() else folder
    if not path.is_file():
        raise InputError(f"expected {file} or a folder with it, got {folder}")
    return path


def data_or_none(given: Path | None) -> Path | None:
    """As `data_path`; None where nothing is given and the variable is not set."""
    return data_path(given) if given or os.environ.get(DATA_VARIABLE) else None


def load_tables(
    path: Path, descriptions: Mapping[str, Description] | None = None, ignored: Collection[str] = ()
) -> list[GpuTable]:
    """Read a Parquet file with the columns COLUMNS, `params` in JSON; tables in the order of their names. Or,
    of one kernel, what Kernel Tuner wrote (.json; see `read_kernel_tuner`).

    descriptions: of the kernels to read, by name; None: all that come with gnnperf. Other kernels, and tables
    without a valid row, are left out. Parameters that the description does not know are passed over where
    they have one value in a space, or are among `ignored`: of rows that differ in these alone the fastest
    counts. Raises InputError.
    """
    known = descriptions or {name: find_description(name) for name in list_descriptions()}
    if path.suffix == ".json" and len(known) == 1:
        columns = read_kernel_tuner(path, *known)
    else:
        columns = _parquet(path, known)
    groups: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for i, (kernel, space, device) in enumerate(
        zip(columns["kernel"], columns["space"], columns["device"], strict=True)
    ):
        groups[kernel, space, device].append(i)
    tables = []
    for (kernel, space, device), rows in sorted(groups.items()):
        try:
            tables.append(_table(known[kernel], space, device, rows, columns, ignored))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{path}: {space} on {device}: expected numbers in time_ms, and JSON objects of numbers in "
                f"params: {error}"
            ) from None
    return [table for table in tables if table is not None]


def _parquet(path: Path, kernels: Collection[str]) -> dict[str, list[Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        table = read_parquet(path, COLUMNS)
        table = table.filter(pc.is_in(table["kernel"], pa.array([*kernels], pa.string())))
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path}: expected a Parquet file with {', '.join(COLUMNS)}: {first_line(error)}"
        ) from None
    columns = {name: table[name].to_pylist() for name in COLUMNS}
    for name in ("space", "device"):
        if wrong := [value for value in columns[name] if not isinstance(value, str)]:
            raise InputError(f"{path}: expected a text in every row of {name}, got {wrong[0]!r}")
    return columns


def _table(
    description: Description, space: str, gpu: str, rows: Sequence[int], columns: Mapping[str, list[Any]],
    ignored: Collection[str],
) -> GpuTable | None:  # fmt: skip
    runtime = np.array([float(columns["time_ms"][i] or 0.0) for i in rows])
    valid = np.array([bool(columns["valid"][i]) for i in rows]) & (runtime > 0) & np.isfinite(runtime)
    if not valid.any():
        return None
    written = [columns["params"][i] for i in rows]
    if isinstance(written[0], str):
        written = from_json(f"[{','.join(written)}]")
    given = [dict(one) for one in written]
    names = {name for configuration in given for name in configuration}
    known = {*description.parameters, *description.sizes}
    for name in sorted(names - known - set(ignored)):
        if len({configuration.get(name) for configuration in given}) > 1:
            raise InputError(
                f"{space}: the description of {description.name} has no parameter {name!r}; add it, or leave "
                f"it out with --ignore {name}"
            )
    given = [{k: v for k, v in c.items() if k in known and v is not None and v == v} for c in given]
    for name in sorted(names & known):
        integers([c[name] for c in given if name in c])  # refuses what `int` would cut off
    configurations = [{name: int(v) for name, v in c.items()} for c in given]
    where_ok = np.where(valid, runtime, np.nan)
    if ignored:
        configurations, where_ok = _fastest(configurations, where_ok)
    return GpuTable(description, load_device(gpu), configurations, space, gpu, where_ok)


def _fastest(
    configurations: Sequence[dict[str, int]], runtime_ms: Float64[np.ndarray, " n"]
) -> tuple[list[dict[str, int]], Float64[np.ndarray, " m"]]:
    """Of equal configurations the one that ran fastest; one that failed where all did."""
    order = np.argsort(runtime_ms, kind="stable")  # NaN last
    first = {tuple(sorted(configurations[i].items())): int(i) for i in order[::-1]}
    kept = sorted(first.values())
    return [configurations[i] for i in kept], runtime_ms[kept]


def spaces_of(tables: Sequence[GpuTable], gpus: int) -> Iterator[tuple[str, list[GpuTable]]]:
    """Search spaces that were measured on at least so many GPUs, with their tables."""
    for space in sorted({table.space for table in tables}):
        mine = [table for table in tables if table.space == space]
        if len(mine) >= gpus:
            yield space, mine
