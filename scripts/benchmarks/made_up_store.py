"""Stores of nests and records that nobody measured, for what takes many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float32

from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Nest, Record, Store
from gnnperf.store.schema import nest_rows, record_rows
from gnnperf.store.tables import open_tables

DEVICE = "cpu/made-up"
_ROWS = 100_000
"""Written at once."""


def nest(digest: str) -> Nest:
    return Nest(digest, "made-up", "made-up", "none")


def record(digest: str, recipe: Recipe) -> Record:
    """Of a nest, as fast as its baseline."""
    return Record(
        nest_digest=digest, kernel="made-up", family="made-up", frontend="none", device_fingerprint=DEVICE,
        device_name="made-up", baseline="none", schedule=recipe.to_json(), schedule_kind=Recipe.kind,
        status="ok", baseline_s=1.0, runtime_s=1.0, interval_lo_s=1.0, interval_hi_s=1.0, speedup=1.0,
    )  # fmt: skip


def filled(location: Path | str, vectors: Float32[np.ndarray, "n d"], encoder_id: str) -> Store:
    """A store with a nest and a record for each vector; nest i has the digest i."""
    nests, records = open_tables(str(location), create=True)
    for start in range(0, len(vectors), _ROWS):
        part = vectors[start : start + _ROWS]
        digests = np.arange(start, start + len(part)).astype("U")
        names = [nest(digest) for digest in digests.tolist()]
        nests.append(nest_rows(names, ["{}"] * len(names), part, encoder_id))
        records.append(_records(digests))
    return Store.open(location)


def _records(digests: np.ndarray) -> pa.Table:
    """One record for each nest; what `record_rows` would make of them, in a hundredth of the time."""
    rows = record_rows([record("0", Recipe())]).take(pa.array(np.zeros(len(digests), np.int64)))
    names = pa.array(digests)
    for column, values in (("nest_digest", names), ("record_id", names)):
        rows = rows.set_column(rows.column_names.index(column), rows.schema.field(column), values)
    return rows
