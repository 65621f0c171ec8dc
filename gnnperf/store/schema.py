"""What the schedule store holds: nests with their embeddings, and records of measurements on them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard
from jaxtyping import Float32

from gnnperf.documents import from_json
from gnnperf.errors import InputError, first_line
from gnnperf.measure.measurement import STATUSES

SCHEMA_VERSION = 1
"""Of the tables and of exported files. Raise it with any change to a column, its type or its meaning."""


def utc_now() -> str:
    """This moment as ISO 8601 in UTC, with microseconds: sorts as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest the store knows. `digest` is that of its program graph."""

    digest: str
    kernel: str
    family: str
    frontend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One measurement of (nest, schedule, device) and where it comes from.

    Attributes:
        nest_digest: digest of the nest's program graph.
        device_fingerprint: decides which machines may use the record.
        baseline: name of what `speedup` is relative to.
        baseline_s, runtime_s: medians in seconds; `interval_lo_s`, `interval_hi_s`: 95% interval of
            `runtime_s`. All None unless `status` is "ok", except that `baseline_s` may be known.
        schedule: the serialised schedule, a JSON object.
        samples: timed runs behind `runtime_s`.
        speedup: baseline median / schedule median, measured interleaved.
        created: ISO 8601 with time zone; kept in UTC with microseconds, so that it sorts as text.
        provenance: a JSON object: compiler, flags, library versions, thread count.
        record_id: hash of all other fields; computed when the record is added, if left empty.
    """

    nest_digest: str
    kernel: str
    family: str
    frontend: str
    device_fingerprint: str
    device_name: str
    baseline: str
    schedule: str
    schedule_kind: str
    status: str
    baseline_s: float | None = None
    runtime_s: float | None = None
    interval_lo_s: float | None = None
    interval_hi_s: float | None = None
    samples: int = 0
    speedup: float | None = None
    created: str = field(default_factory=utc_now)
    provenance: str = "{}"
    schema_version: int = SCHEMA_VERSION
    record_id: str = ""


FIGURES = ("baseline_s", "runtime_s", "interval_lo_s", "interval_hi_s", "speedup")
_NAMES = (
    "nest_digest", "kernel", "family", "frontend", "device_fingerprint", "device_name", "baseline",
    "schedule_kind",
)  # fmt: skip
_RECORD_FIELDS = tuple(f.name for f in fields(Record))


LONGEST_NAME, LONGEST_GRAPH = 200, 2**23
"""Characters of a name, bytes of a graph's JSON."""
_MOST_SAMPLES, _LONGEST_JSON = 2**40, 2**18
_UNWANTED = re.compile(r"""[/\\"'`<>]|^\.+$""")
"""Quotes, separators of paths, markup, and names of folders."""


def name_problem(name: object) -> str:
    """Why a text may not name something, as names are shown, searched and written to files; empty where it
    may."""
    return _name_problem(name) if isinstance(name, str) else f"expected a name, got {_short(name)}"


@lru_cache(1 << 14)
def _name_problem(name: str) -> str:
    if not name:
        return "expected a name, got an empty one"
    if len(name) > LONGEST_NAME:
        return f"expected a name of at most {LONGEST_NAME} characters, got {len(name)}"
    if not name.isprintable() or _UNWANTED.search(name):
        return f"expected a name without quotes, slashes, < > and control characters, got {_short(name)}"
    return ""


def plain_name(text: str) -> str:
    """A name that a store takes, of whatever the user called something."""
    printed = "".join(c if c.isprintable() else "_" for c in text[:LONGEST_NAME])
    return _UNWANTED.sub("_", printed) or "_"


def content_id(record: Record) -> str:
    """Hash of all fields but `record_id`: equal measurements have equal ids, wherever they are kept."""
    content = {name: getattr(record, name) for name in _RECORD_FIELDS if name != "record_id"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def checked(record: Record) -> Record:
    """The record in its canonical form (numbers as float, compact JSON, UTC), with its id.

    Raises InputError if a field is wrong, or if `record_id` is not that of the content.
    """
    where = f"record of nest {_short(str(record.nest_digest)[:12])[1:-1]}"
    if type(record.schema_version) is not int or record.schema_version != SCHEMA_VERSION:
        raise InputError(
            f"{where}: expected schema version {SCHEMA_VERSION}, got {_short(record.schema_version)}; "
            "use the gnnperf that wrote it"
        )
    for name in _NAMES:
        value = getattr(record, name)
        if not isinstance(value, str) or not value:
            raise InputError(f"{where}: expected {name} to be a non-empty string, got {_short(value)}")
    if record.status not in STATUSES:
        raise InputError(
            f"{where}: expected a status among {', '.join(STATUSES)}, got {_short(record.status)}"
        )
    samples = int(record.samples) if isinstance(record.samples, Integral) else -1
    if not 0 <= samples <= _MOST_SAMPLES:
        raise InputError(f"{where}: expected samples to be a count, got {_short(record.samples)}")
    figures: dict[str, Any] = {name: _figure(record, name, where) for name in FIGURES}
    canonical = replace(
        record,
        **figures,
        samples=samples,
        schedule=_json_object(record.schedule, f"{where}: schedule"),
        provenance=_json_object(record.provenance, f"{where}: provenance"),
        created=_utc(record.created, f"{where}: created"),
    )
    identity = content_id(canonical)
    if record.record_id not in ("", identity):
        raise InputError(
            f"{where}: expected record_id {identity}, got {record.record_id}; its content was changed"
        )
    return replace(canonical, record_id=identity)


def _figure(record: Record, name: str, where: str) -> float | None:
    value = getattr(record, name)
    if value is None:
        if record.status == "ok":
            raise InputError(f"{where}: expected {name} with status ok, got none")
        return None
    if record.status != "ok" and name != "baseline_s":
        raise InputError(f"{where}: expected no {name} with status {record.status}, got {value!r}")
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.inf
    if not 0 < number < math.inf:
        raise InputError(f"{where}: expected {name} to be a positive number, got {_short(value)}")
    return number


def _json_object(text: Any, where: str) -> str:
    try:
        value = from_json(text)
        if isinstance(value, dict) and len(text) <= _LONGEST_JSON:
            compact = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            compact.encode()  # half of a character has no bytes
            return compact
    except (TypeError, ValueError):
        pass
    raise InputError(f"{where}: expected the text of a JSON object, got {_short(text)}")


def _utc(text: Any, where: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        moment = None
    try:
        if moment is not None and moment.tzinfo is not None:
            return moment.astimezone(UTC).isoformat(timespec="microseconds")
    except OverflowError:  # before the year 1 or after 9999
        pass
    raise InputError(f"{where}: expected a time with its zone, such as {utc_now()}, got {_short(text)}")


def _short(value: Any) -> str:
    """For a message: what strangers wrote, on one line."""
    text = repr(value) if isinstance(value, str) else str(value)
    text = "".join(c if c.isprintable() else "?" for c in text[:61])
    return text if len(text) <= 60 else f"{text[:60]}..."


# --------------------------------------------------------------------------- tables

# `row_id` names a row of the table whatever it holds, so that of two equal rows one can be removed.
_ROW_ID = pa.field("row_id", pa.int64())


def _metadata(table: str) -> dict[str, str]:
    return {"gnnperf_table": table, "gnnperf_schema_version": str(SCHEMA_VERSION)}


NESTS = pa.schema(
    [
        _ROW_ID,
        ("digest", pa.string()),
        ("kernel", pa.string()),
        ("family", pa.string()),
        ("frontend", pa.string()),
        ("encoder_id", pa.string()),
        # Not of fixed size: embeddings of several encoders stand side by side.
        ("embedding", pa.list_(pa.float32())),
        ("graph", pa.binary()),  # the program graph's JSON, zstd
        ("updated", pa.string()),
    ],
    metadata=_metadata("nests"),
)
"""One row for each embedding of a nest. Where (digest, encoder_id) repeats, the newest row counts."""

_TYPES = {"float | None": pa.float64(), "int": pa.int64(), "str": pa.string()}
RECORDS = pa.schema(
    [_ROW_ID, *((f.name, _TYPES[str(f.type)]) for f in fields(Record))], metadata=_metadata("records")
)
"""One row for each record. Where `record_id` repeats, any row counts."""


def nest_rows(
    nests: Sequence[Nest], graphs: Sequence[str], embeddings: Float32[np.ndarray, "n d"], encoder_id: str
) -> pa.Table:
    """Rows of `NESTS`. `graphs` are the program graphs as JSON. Raises InputError."""
    matrix = np.ascontiguousarray(embeddings, dtype=np.float32)
    if matrix.ndim != 2 or not len(nests) == len(graphs) == len(matrix):
        raise InputError(
            f"expected one graph and one row of the embeddings for each of {len(nests)} nests, "
            f"got {len(graphs)} graphs and embeddings of shape {matrix.shape}"
        )
    bad = ~np.isfinite(matrix).all(axis=1) | ~matrix.any(axis=1)
    if bad.any():
        digest = nests[int(np.argmax(bad))].digest
        raise InputError(
            f"nest {digest[:12]}: expected an embedding that is finite and not zero; check the encoder"
        )
    if not encoder_id or not all(nest.digest for nest in nests):
        raise InputError("expected the encoder and every nest to have an id, got an empty one")
    compressor = zstandard.ZstdCompressor()
    offsets = np.arange(len(matrix) + 1, dtype=np.int32) * matrix.shape[1]
    columns: dict[str, Any] = {name: [getattr(nest, name) for nest in nests] for name in Nest.__slots__}
    columns |= {
        "row_id": _row_ids(len(nests)),
        "encoder_id": [encoder_id] * len(nests),
        "embedding": pa.ListArray.from_arrays(pa.array(offsets), pa.array(matrix.ravel())),
        "graph": [compressor.compress(text.encode()) for text in graphs],
        "updated": [utc_now()] * len(nests),
    }
    return pa.table(columns, schema=NESTS)


def record_rows(records: Iterable[Record]) -> pa.Table:
    """Rows of `RECORDS`, checked. Raises InputError."""
    return rows_of_checked([checked(record) for record in records])


def rows_of_checked(ready: Sequence[Record]) -> pa.Table:
    """Rows of `RECORDS` of what `checked` gave."""
    columns = {name: [getattr(record, name) for record in ready] for name in _RECORD_FIELDS}
    return pa.table(columns | {"row_id": _row_ids(len(ready))}, schema=RECORDS)


def to_records(rows: pa.Table) -> list[Record]:
    """Records of rows of `RECORDS`, which were checked when they were written."""
    columns = [rows[name].to_pylist() for name in _RECORD_FIELDS]
    return [Record(**dict(zip(_RECORD_FIELDS, values, strict=True))) for values in zip(*columns, strict=True)]


def to_nests(rows: pa.Table) -> list[Nest]:
    """Nests of rows of `NESTS`."""
    columns = [rows[name].to_pylist() for name in Nest.__slots__]
    return [Nest(*values) for values in zip(*columns, strict=True)]


def to_graph_json(blob: bytes) -> str:
    """The program graph's JSON from the column `graph`. Raises InputError where it is damaged, or longer than
    any graph."""
    try:
        if zstandard.frame_content_size(blob) > LONGEST_GRAPH:
            raise InputError(f"expected a graph of at most {LONGEST_GRAPH} bytes, got a longer one")
        return zstandard.ZstdDecompressor().decompress(blob, LONGEST_GRAPH).decode()
    except (TypeError, ValueError, zstandard.ZstdError) as error:
        raise InputError(f"a damaged graph: {first_line(error)}") from None


def _row_ids(count: int) -> np.ndarray:
    # From the operating system's entropy: writers in several processes never agree on one.
    return np.random.default_rng().integers(0, 2**63 - 1, count, dtype=np.int64)
