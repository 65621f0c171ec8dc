"""The measurements that go with released networks: a small Parquet file of each kernel.

A row is a configuration, a column a table: log2 of milliseconds in steps of 1 / STEPS, which is finer than
the measurements repeat; FAILED where it did not run, empty where it was not tried.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from gnnperf.devices import load_device
from gnnperf.documents import from_json, read_parquet
from gnnperf.errors import InputError, first_line
from gnnperf.frontends.gpu_kernels import Description
from gnnperf.frontends.gpu_kernels.tables import GpuTable

STEPS = 256
FAILED = np.iinfo(np.int16).min
TABLES = b"tables"
"""Key of the file's metadata: by column space, gpu, and sizes where they are not the description's."""


def tables_to_bytes(tables: Sequence[GpuTable]) -> bytes:
    """Tables of one kernel as a Parquet file. InputError where one of them is of several problems."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    description = tables[0].description
    keys = sorted({key for table in tables for key in table.keys})
    row = {key: i for i, key in enumerate(keys)}
    columns: dict[str, Any] = {
        name: np.array([key[i] for key in keys], dtype=np.int16)
        for i, name in enumerate(description.parameters)
    }
    about = {}
    for number, table in enumerate(tables):
        steps = np.full(len(keys), FAILED, dtype=np.int16)
        tried = np.zeros(len(keys), dtype=bool)
        at = np.array([row[key] for key in table.keys])
        log2_ms = np.log2(np.where(table.ok, table.runtime_ms, 1.0))
        steps[at] = np.where(table.ok, np.round(STEPS * log2_ms), FAILED).astype(np.int16)
        tried[at] = True
        columns[f"table{number}"] = pa.array(steps, mask=~tried)
        about[f"table{number}"] = {"space": table.space, "gpu": table.gpu, "sizes": _sizes(table)}
    written = pa.table(columns).replace_schema_metadata({TABLES: json.dumps(about).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(written, sink, compression="zstd", compression_level=19)
    return bytes(sink.getvalue())


def tables_from_bytes(data: bytes, description: Description) -> list[GpuTable]:
    """Tables of a kernel; none where they are of another kernel of that name, with other parameters. Raises
    InputError for a damaged file."""
    import pyarrow as pa

    names = list(description.parameters)
    try:
        read = read_parquet(pa.BufferReader(data))
        about = from_json((read.schema.metadata or {})[TABLES].decode())
        if read.column_names != [*names, *about]:
            return []
        keys = np.stack([read[name].to_numpy() for name in names], axis=1)
        return [_table(description, read[column], keys, facts) for column, facts in about.items()]
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        raise InputError(
            f"damaged measurements of {description.name}: {first_line(error)}; restore the checkpoint, or "
            "train it anew"
        ) from None


def _table(description: Description, column: Any, keys: np.ndarray, facts: dict[str, Any]) -> GpuTable:
    tried = ~np.asarray(column.is_null())
    steps = np.asarray(column.drop_null()).astype(float)
    runtime_ms = np.where(steps == FAILED, np.nan, np.exp2(steps / STEPS))
    configurations = [
        {**dict(zip(description.parameters, key, strict=True)), **facts["sizes"]}
        for key in keys[tried].tolist()
    ]
    device = load_device(facts["gpu"])
    return GpuTable(description, device, configurations, facts["space"], facts["gpu"], runtime_ms)


def _sizes(table: GpuTable) -> dict[str, int]:
    """The problem of a table, where it is not the description's."""
    found = {name: np.unique(table.plan.values[name]) for name in table.description.sizes}
    if several := [name for name, values in found.items() if len(values) > 1]:
        raise InputError(f"{table.space}: expected one problem in a table, got several {several[0]}")
    return {
        name: int(values[0]) for name, values in found.items() if values[0] != table.description.sizes[name]
    }
