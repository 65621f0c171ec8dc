"""A store as one file: JSON lines, compressed with zstd.

The first line is `{"format": "gnnperf-store", "schema_version": 1}`. Then come lines `{"nest": {...}}`, one
for each embedding of a nest, lines `{"record": {...}}` with the fields of `Record`, and at the end
`{"end": {"nests": N, "records": M}}`. Embeddings are base64 of little-endian float32, so that they come back
exactly.
"""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard

from gnnperf.errors import InputError
from gnnperf.store.schema import (
    NESTS,
    SCHEMA_VERSION,
    Nest,
    Record,
    nest_rows,
    record_rows,
    to_graph_json,
    to_records,
)

Batch = tuple[pa.Table, pa.Table]
"""Rows of `NESTS` and rows of `RECORDS`; either may be empty."""

FORMAT = "gnnperf-store"
_BATCH = 10_000
_NEST_KEYS = ("digest", "kernel", "family", "frontend", "encoder_id", "embedding", "graph_json")


def write_export(path: Path, batches: Iterable[Batch]) -> tuple[int, int]:
    """Write the file, which appears only when it is complete; the numbers of nests and of records.

    Raises InputError if it cannot be written.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    compressor = zstandard.ZstdCompressor(level=10, write_checksum=True)
    nests = records = 0
    try:
        try:
            with partial.open("wb") as file, compressor.stream_writer(file) as out:
                out.write(_line({"format": FORMAT, "schema_version": SCHEMA_VERSION}))
                for nest_batch, record_batch in batches:
                    for row in nest_batch.to_pylist():
                        out.write(_line({"nest": _nest_object(row)}))
                    for record in to_records(record_batch):
                        fields = {name: getattr(record, name) for name in Record.__slots__}
                        out.write(_line({"record": fields}))
                    nests += nest_batch.num_rows
                    records += record_batch.num_rows
                out.write(_line({"end": {"nests": nests, "records": records}}))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; name a file that can be written") from error
    return nests, records


def read_export(path: Path) -> Iterator[Batch]:
    """What the file holds, in batches. Raises InputError where it is damaged or of another version."""
    lines = _lines(path)
    header = next(lines, (1, {}))[1]
    if header.get("format") != FORMAT:
        raise InputError(f"expected a file made by `gnnperf store export`, got {path}")
    if header.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"{path}: expected schema version {SCHEMA_VERSION}, got {header.get('schema_version')}; "
            "use the gnnperf that wrote it"
        )
    nests: list[dict[str, Any]] = []
    records: list[Record] = []
    end = None
    for number, line in lines:
        try:
            ((kind, fields),) = line.items()
            if kind == "nest":
                nests.append({name: fields[name] for name in _NEST_KEYS})
            elif kind == "record":
                records.append(Record(**fields))
            elif kind == "end":
                end = fields
            else:
                raise KeyError(kind)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} line {number}: expected a nest or a record ({error!r}); export it again"
            ) from error
        if len(nests) + len(records) >= _BATCH:
            yield _batch(path, nests, records)
            nests, records = [], []
    yield _batch(path, nests, records)
    if end is None:
        raise InputError(f"{path} is cut short: what was left of it has been added; export it again")


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of each line."""
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            for number, line in enumerate(io.TextIOWrapper(reader, encoding="utf-8"), start=1):
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise ValueError("not a JSON object")
                yield number, value
    except OSError as error:
        reason = error.strerror
        raise InputError(
            f"cannot read {path}: {reason}; name a file made by `gnnperf store export`"
        ) from error
    except (zstandard.ZstdError, ValueError) as error:
        raise InputError(f"{path} is damaged or not an export ({error}); export it again") from error


def _batch(path: Path, nests: list[dict[str, Any]], records: list[Record]) -> Batch:
    try:
        of_encoder: dict[str, list[dict[str, Any]]] = {}
        for fields in nests:
            of_encoder.setdefault(fields["encoder_id"], []).append(fields)
        tables = [_nest_table(rows, encoder_id) for encoder_id, rows in of_encoder.items()]
        return pa.concat_tables([NESTS.empty_table(), *tables]), record_rows(records)
    except (InputError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error


def _nest_table(nests: list[dict[str, Any]], encoder_id: str) -> pa.Table:
    vectors = [np.frombuffer(base64.b64decode(fields["embedding"], validate=True), "<f4") for fields in nests]
    return nest_rows(
        [Nest(*(fields[name] for name in Nest.__slots__)) for fields in nests],
        [fields["graph_json"] for fields in nests],
        np.stack(vectors),
        encoder_id,
    )


def _nest_object(row: dict[str, Any]) -> dict[str, Any]:
    vector = np.asarray(row["embedding"], "<f4")
    return {name: row[name] for name in (*Nest.__slots__, "encoder_id")} | {
        "embedding": base64.b64encode(vector.tobytes()).decode(),
        "graph_json": to_graph_json(row["graph"]),
    }


def _line(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n").encode()
