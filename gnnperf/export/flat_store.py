"""The schedule store as one flat file that programs map into memory.

Layout, little-endian, every section at a multiple of 64 bytes:

    magic      8 bytes, b"GNNPSTOR"
    version    u32
    length     u32, of the header
    checksum   u32, CRC-32 of the header
    header     JSON: what is in the file, and the offset, the size in bytes and the CRC-32 of each section
    vectors    f32[n, d], rows of norm 1, sorted by list
    usable     u8[fingerprints, n], 1 where a nest has an "ok" record from such a device
    lines      u64[n + 1], where the line of each nest begins in `text`
    centroids  f32[c, d], and
    bounds     u64[c + 1], first row of each list; c is 0 where all vectors are compared with a query
    text       JSON lines, one for each nest: digest, kernel, family, frontend, and its records, "ok" ones by
               falling speedup, then the failures
"""

from __future__ import annotations

import json
import mmap
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32

from gnnperf.documents import from_json
from gnnperf.errors import InputError
from gnnperf.export.writing import write_whole
from gnnperf.store import Record, Store, StoredNest
from gnnperf.store.clusters import WORTH_IT, Clusters, cluster

MAGIC, VERSION = b"GNNPSTOR", 2
_ALIGNMENT = 64
_PREAMBLE = 20
"""Bytes before the header."""
_FIELDS = (
    "device_fingerprint", "baseline", "schedule_kind", "status", "speedup", "runtime_s", "baseline_s",
)  # fmt: skip


def export_store(path: Path, store: Store, encoder_id: str) -> dict[str, Any]:
    """Write all nests that this encoder embedded, with their records. Returns the header.

    Raises InputError: there are none, or the file cannot be written.
    """
    entries = [entry for entry in store.entries(encoder_id) if entry.embedding is not None]
    if not entries:
        raise InputError(
            f"expected nests of the store {store.location} embedded by {encoder_id}, got none; "
            "embed them with this checkpoint first"
        )
    entries.sort(key=lambda entry: entry.nest.digest)
    fingerprints = sorted({r.device_fingerprint for entry in entries for r in entry.records})
    usable = np.array(
        [[_has_ok(entry.records, name) for entry in entries] for name in fingerprints], dtype=bool
    ).reshape(len(fingerprints), len(entries))
    vectors = np.stack([entry.embedding for entry in entries if entry.embedding is not None])
    records = sum(len(entry.records) for entry in entries)
    return write_flat(path, encoder_id, vectors, dict(zip(fingerprints, usable, strict=True)),
                      [_line(entry) for entry in entries], records)  # fmt: skip


def write_flat(
    path: Path,
    encoder_id: str,
    vectors: Float32[np.ndarray, "n d"],
    usable: Mapping[str, Bool[np.ndarray, " n"]],
    lines: Sequence[bytes],
    records: int,
) -> dict[str, Any]:
    """Write n nests. usable: for each device fingerprint, which nests have an "ok" record from it.
    records: how many the lines hold. Returns the header."""
    clusters = None
    if len(vectors) >= WORTH_IT:
        clusters, order = cluster(vectors)
        vectors, lines = vectors[order], [lines[i] for i in order]
        usable = {name: flags[order] for name, flags in usable.items()}
    starts = np.cumsum([0, *map(len, lines)], dtype=np.uint64)
    flags = np.stack([*usable.values()]) if usable else np.zeros((0, len(vectors)), bool)
    sections: dict[str, Any] = {
        "vectors": np.ascontiguousarray(vectors, "<f4"),
        "usable": np.ascontiguousarray(flags, np.uint8),
        "lines": starts.astype("<u8"),
        "centroids": (clusters.centroids if clusters else vectors[:0]).astype("<f4"),
        "bounds": (clusters.bounds if clusters else np.zeros(1)).astype("<u8"),
        "text": b"".join(lines),
    }
    header: dict[str, Any] = {
        "encoder_id": encoder_id,
        "embedding_width": vectors.shape[1],
        "nests": len(vectors),
        "records": records,
        "fingerprints": list(usable),
        "lists": len(clusters.centroids) if clusters else 0,
        "probes": clusters.probes if clusters else 0,
    }
    write_whole(path, _laid_out(header, sections))
    return header


def _laid_out(header: Mapping[str, Any], sections: Mapping[str, Any]) -> Iterable[bytes | memoryview]:
    """The parts of the file in order. The header is padded, so that its length does not depend on the
    offsets that it tells."""
    # Empty arrays have no bytes to cast.
    parts = {
        n: memoryview(p).cast("B") if memoryview(p).nbytes else memoryview(b"") for n, p in sections.items()
    }
    longest = {name: [2**60, 2**60, 2**32] for name in parts}
    room = _aligned(_PREAMBLE + len(json.dumps({**header, "sections": longest})))
    places, offset = {}, room
    for name, part in parts.items():
        places[name] = [offset, part.nbytes, zlib.crc32(part)]
        offset = _aligned(offset + part.nbytes)
    text = json.dumps({**header, "sections": places}).encode().ljust(room - _PREAMBLE)
    yield MAGIC + np.array([VERSION, len(text), zlib.crc32(text)], "<u4").tobytes() + text
    for part in parts.values():
        yield part
        yield bytes(_aligned(part.nbytes) - part.nbytes)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _has_ok(records: Sequence[Record], fingerprint: str) -> bool:
    return any(r.status == "ok" and r.device_fingerprint == fingerprint for r in records)


def _line(entry: StoredNest) -> bytes:
    nest = {name: getattr(entry.nest, name) for name in ("digest", "kernel", "family", "frontend")}
    records = [
        {"schedule": json.loads(r.schedule)} | {name: getattr(r, name) for name in _FIELDS}
        for r in entry.records
    ]
    return (json.dumps({**nest, "records": records}, separators=(",", ":")) + "\n").encode()


@dataclass(frozen=True)
class FlatStore:
    """An exported store, mapped into memory: what the C++ client does, for tests and benchmarks."""

    header: Mapping[str, Any]
    vectors: Float32[np.ndarray, "n d"]
    usable: Bool[np.ndarray, "fingerprints n"]
    clusters: Clusters | None
    lines: np.ndarray
    text: memoryview

    def nearest(
        self, embedding: Float32[np.ndarray, " d"], k: int, fingerprint: str
    ) -> list[tuple[int, float]]:
        """(row, cosine distance) of the k nearest nests that are usable on a device, nearest first."""
        if fingerprint not in self.header["fingerprints"]:
            return []
        usable = self.usable[self.header["fingerprints"].index(fingerprint)]
        query = embedding / np.linalg.norm(embedding)
        found = self.clusters.search(self.vectors, query, k, usable) if self.clusters else None
        if found is None:
            rows = np.flatnonzero(usable)
            found = rows, (self.vectors @ query)[rows]
        best = np.lexsort((found[0], -found[1]))[:k]
        return [(int(found[0][i]), max(0.0, 1.0 - float(found[1][i]))) for i in best]

    def nest(self, row: int) -> dict[str, Any]:
        """The line of a nest."""
        return json.loads(bytes(self.text[int(self.lines[row]) : int(self.lines[row + 1])]))


def open_flat(path: Path) -> FlatStore:
    """Map a file. Raises InputError where it is not one, of another version, or cut short."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        if bytes(data[:8]) != MAGIC:
            raise InputError(f"{path}: expected a store written by `gnnperf export`, got another file")
        version, length, checksum = (int(v) for v in np.frombuffer(data[8:_PREAMBLE], "<u4"))
        if version != VERSION:
            raise InputError(f"{path}: store version is {version}, expected {VERSION}; export it again")
        header = from_json(
            bytes(_checked(path, "the header", data[_PREAMBLE : _PREAMBLE + length], checksum)).decode()
        )
        n, d, c = header["nests"], header["embedding_width"], header["lists"]

        def content(name: str) -> memoryview:
            offset, size, checksum = header["sections"][name]
            return _checked(path, name, data[offset : offset + size], checksum)

        def section(name: str, dtype: str, *shape: int) -> np.ndarray:
            return np.frombuffer(content(name), dtype).reshape(shape)

        centroids, bounds = section("centroids", "<f4", c, d), section("bounds", "<u8", c + 1)
        if c and not (1 <= header["probes"] <= c and (bounds[1:] >= bounds[:-1]).all() and bounds[-1] <= n):
            raise ValueError("the lists do not follow one another")
        return FlatStore(
            header,
            section("vectors", "<f4", n, d),
            section("usable", "?", len(header["fingerprints"]), n),
            Clusters(centroids, bounds.astype(np.int64), header["probes"]) if c else None,
            section("lines", "<u8", n + 1),
            content("text"),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot read the store {path}: {error}; export it again") from error


def _checked(path: Path, what: str, part: memoryview, checksum: int) -> memoryview:
    """A part of the file. Raises InputError where it is not what was written."""
    if (got := zlib.crc32(part)) != checksum:
        raise InputError(f"{path}: {what}: checksum is {got:08x}, expected {checksum:08x}; export it again")
    return part
