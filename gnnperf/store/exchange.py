"""A store as one file: JSON lines, compressed with zstd.

The first line is `{"format": "gnnperf-store", "schema_version": 1}`. Then come lines `{"nest": {...}}`, one
for each embedding of a nest, lines `{"record": {...}}` with the fields of `Record`, and at the end
`{"end": {"nests": N, "records": M}}`. Embeddings are base64 of little-endian float32, so that they come back
exactly.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import zstandard
from numpy.typing import NDArray

from gnnperf.documents import EXPANSION, SMALL, from_json, replacing
from gnnperf.errors import InputError, first_line
from gnnperf.store.schema import (
    NESTS,
    SCHEMA_VERSION,
    Nest,
    Record,
    nest_rows,
    rows_of_checked,
    to_graph_json,
    to_records,
)
from gnnperf.store.vetting import Vetting

Batch = tuple[pa.Table, pa.Table]
"""Rows of `NESTS` and rows of `RECORDS`; either may be empty."""

FORMAT = "gnnperf-store"
LONGEST_LINE = 2**24
"""Bytes."""
MOST_REFUSED = 100_000
"""Lines, after which a file is given up."""
_BATCH = 10_000
_CHUNK = 2**20


def write_export(path: Path, batches: Iterable[Batch]) -> tuple[int, int]:
    """Write the file, which appears only when it is complete; the numbers of nests and of records.

    Raises InputError if it cannot be written.
    """
    compressor = zstandard.ZstdCompressor(level=10, write_checksum=True)
    nests = records = 0
    try:
        with (
            replacing(path) as partial,
            partial.open("wb") as file,
            compressor.stream_writer(file) as out,
        ):
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
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; name a file that can be written") from error
    return nests, records


def read_export(path: Path, vetting: Vetting) -> Iterator[Batch]:
    """What the file holds and the vetting believes, in batches; the vetting keeps the reasons for the rest.

    The file may be of anybody: a line is read up to `LONGEST_LINE`, a file up to `EXPANSION` times its size.
    Raises InputError where it is cut short, damaged as a whole, or of another version.
    """
    lines = _lines(path)
    _check_header(path, next(lines, (1, b""))[1])
    nests: list[_EmbeddedNest] = []
    records: list[Record] = []
    end, failure = False, None
    try:
        for number, line in lines:
            try:
                found = _read(line, vetting)
            except InputError as error:
                vetting.refuse(f"line {number}", first_line(error))
                if vetting.refused == MOST_REFUSED:
                    raise InputError(f"{path}: {MOST_REFUSED} lines of it cannot be used") from None
                continue
            if isinstance(found, Record):
                records.append(found)
            elif found is not None:
                nests.append(found)
            end = found is None
            if len(nests) + len(records) >= _BATCH:
                yield _batch(nests, records)
                nests, records = [], []
    except InputError as error:
        failure = error
    yield _batch(nests, records)
    if failure is not None:
        raise failure
    if not end:
        raise InputError(f"{path} is cut short: what was left of it has been added; export it again")


class _EmbeddedNest(NamedTuple):
    nest: Nest
    encoder_id: str
    vector: NDArray[np.float32]
    graph_json: str


def _check_header(path: Path, line: bytes | None) -> None:
    try:
        header = from_json((line or b"").decode())
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"expected a file made by `gnnperf store export`, got {path}")
    if header.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"{path}: expected schema version {SCHEMA_VERSION}, got "
            f"{ascii(header.get('schema_version'))[:60]}; use the gnnperf that wrote it"
        )


def _read(line: bytes | None, vetting: Vetting) -> _EmbeddedNest | Record | None:
    """A line; None for the last one. Raises InputError where it is none of an export, or is not believed."""
    if line is None:
        raise InputError(f"expected lines of at most {LONGEST_LINE} bytes, got a longer one")
    try:
        ((kind, fields),) = from_json(line.decode()).items()
        if kind == "nest":
            texts = [fields[name] for name in (*Nest.__slots__, "encoder_id", "embedding", "graph_json")]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("not all of it is text")
            *names, encoder_id, embedding, graph_json = texts
            vector = np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
            nest = _EmbeddedNest(Nest(*names), encoder_id, vector, graph_json)
        elif kind == "record":
            return vetting.record(Record(**fields))
        elif kind == "end":
            return None
        else:
            raise KeyError(kind)
    except InputError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"expected a nest or a record, got {type(error).__name__}: {_printed(first_line(error))}"
        ) from None
    if problem := vetting.nest_problem(*nest):
        raise InputError(problem)
    return nest


def _lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """(number, line) of each line; None in place of one that is longer than `LONGEST_LINE`."""
    try:
        most = max(SMALL, EXPANSION * path.stat().st_size)
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            number, rest, overlong = 1, b"", False
            for chunk in iter(partial(reader.read, _CHUNK), b""):
                if reader.tell() > most:
                    raise InputError(
                        f"{path} expands to more than {most} bytes: what was read until then has been added; "
                        "expected a file made by `gnnperf store export`"
                    )
                if overlong and b"\n" not in chunk:
                    continue
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    yield number, None if overlong or len(line) > LONGEST_LINE else line
                    number, overlong = number + 1, False
                if len(rest) > LONGEST_LINE:
                    rest, overlong = b"", True
            if rest or overlong:
                yield number, None if overlong else rest
    except OSError as error:
        reason = error.strerror
        raise InputError(
            f"cannot read {path}: {reason}; name a file made by `gnnperf store export`"
        ) from error
    except zstandard.ZstdError as error:
        raise InputError(f"{path} is damaged or not an export ({error}); export it again") from error


def _batch(nests: Sequence[_EmbeddedNest], records: Sequence[Record]) -> Batch:
    of_encoder: dict[str, list[_EmbeddedNest]] = {}
    for found in nests:
        of_encoder.setdefault(found.encoder_id, []).append(found)
    tables = [
        nest_rows([f.nest for f in of_one], [f.graph_json for f in of_one],
                  np.stack([f.vector for f in of_one]), encoder_id)
        for encoder_id, of_one in of_encoder.items()
    ]  # fmt: skip
    return pa.concat_tables([NESTS.empty_table(), *tables]), rows_of_checked(records)


def _printed(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)


def _nest_object(row: dict[str, Any]) -> dict[str, Any]:
    vector = np.asarray(row["embedding"], "<f4")
    return {name: row[name] for name in (*Nest.__slots__, "encoder_id")} | {
        "embedding": base64.b64encode(vector.tobytes()).decode(),
        "graph_json": to_graph_json(row["graph"]),
    }


def _line(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n").encode()
