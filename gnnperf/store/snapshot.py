"""The tables in memory, at one version of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float32, Int64

from gnnperf.errors import InputError, StoreError
from gnnperf.store.index_files import IndexFiles
from gnnperf.store.rows import repeated_row_ids, without
from gnnperf.store.schema import Nest, Record, to_nests, to_records
from gnnperf.store.searchable import Searchable, arranged

NEST_COLUMNS = ("row_id", "digest", "kernel", "family", "frontend", "encoder_id", "embedding", "updated")
"""All but the graphs, which are fetched one by one when they are asked for."""


class RecordIndex:
    """The records, grouped by nest; in each group the usable come first, by falling speedup."""

    def __init__(self, rows: pa.Table) -> None:
        rows = rows.combine_chunks()
        self.superseded: list[int] = repeated_row_ids(rows, ["record_id"])
        rows = without(rows, self.superseded)
        groups = _codes(rows["nest_digest"])
        ok = _as_array(pc.equal(rows["status"], "ok"))
        speedup = _as_array(pc.fill_null(rows["speedup"], 0.0))
        order = np.lexsort((-speedup, ~ok, groups[0]))
        self.rows: pa.Table = rows.take(pa.array(order)).combine_chunks()
        self.digests: pa.Array = groups[1]
        self._group: Int64[np.ndarray, " n"] = groups[0][order].astype(np.int64)
        self._ok: Bool[np.ndarray, " n"] = ok[order]
        self._bounds = np.searchsorted(self._group, np.arange(len(self.digests) + 1))
        self._position = {digest: i for i, digest in enumerate(self.digests.to_pylist())}
        codes, fingerprints = _codes(self.rows["device_fingerprint"])
        self._device = codes
        self._device_code = {name: code for code, name in enumerate(fingerprints.to_pylist())}

    def groups(self, digests: pa.Array) -> Int64[np.ndarray, " n"]:
        """For each digest, the number of its group, or -1."""
        return _as_array(pc.fill_null(pc.index_in(digests, self.digests), -1))

    @property
    def devices(self) -> tuple[str, ...]:
        """Fingerprints of the devices that there are records of."""
        return tuple(sorted(self._device_code))

    def usable(self, fingerprint: str) -> Bool[np.ndarray, " groups+1"]:
        """For each group, whether a device with this fingerprint has an "ok" record in it; at -1, False."""
        mine = self._ok & (self._device == self._device_code.get(fingerprint, -1))
        usable = np.zeros(len(self.digests) + 1, dtype=bool)
        usable[self._group[mine]] = True
        return usable

    def of(self, digests: Sequence[str], fingerprint: str | None = None) -> list[tuple[Record, ...]]:
        """For each digest its records: "ok" ones by falling speedup, then the failures."""
        device = None if fingerprint is None else self._device_code.get(fingerprint, -1)
        chosen = [self._of_one(digest, device) for digest in digests]
        records = to_records(self.rows.take(pa.array(np.concatenate([*chosen, np.zeros(0, np.int64)]))))
        ends = np.cumsum([len(rows) for rows in chosen])
        return [tuple(records[end - len(rows) : end]) for rows, end in zip(chosen, ends, strict=True)]

    def _of_one(self, digest: str, device: int | None) -> Int64[np.ndarray, " n"]:
        group = self._position.get(digest)
        if group is None:
            return np.zeros(0, np.int64)
        rows = np.arange(self._bounds[group], self._bounds[group + 1])
        return rows if device is None else rows[self._device[rows] == device]


class NestIndex:
    """The nests, and the embeddings of each encoder as one matrix."""

    def __init__(self, rows: pa.Table) -> None:
        rows = rows.sort_by("updated") if _is_unsorted(rows["updated"]) else rows
        rows = rows.combine_chunks()
        self.superseded: list[int] = repeated_row_ids(rows, ["digest", "encoder_id"])
        rows = without(rows, self.superseded)
        self.rows: pa.Table = rows.drop_columns(["embedding"])
        encoders = pc.unique(rows["encoder_id"]).to_pylist()
        of_encoder = {name: rows.filter(pc.equal(rows["encoder_id"], name)) for name in encoders}
        self.by_encoder = {name: Embeddings(of_one) for name, of_one in of_encoder.items()}

    def digests(self) -> list[str]:
        """Of all nests, each once."""
        return pc.unique(self.rows["digest"]).to_pylist()

    def nests(self, digests: Sequence[str]) -> list[Nest]:
        """The nests with these digests, in this order."""
        rows = self.rows.filter(pc.is_in(self.rows["digest"], pa.array(digests, pa.string())))
        found = {nest.digest: nest for nest in to_nests(rows)}
        return [found[digest] for digest in digests]


class Embeddings:
    """The nests one encoder has embedded."""

    def __init__(self, rows: pa.Table) -> None:
        rows = rows.combine_chunks()
        self._rows: pa.Table = rows.drop_columns(["embedding"])
        self.digests: pa.Array = rows["digest"].combine_chunks()
        self.row_ids: Int64[np.ndarray, " n"] = _as_array(rows["row_id"])
        self.matrix: Float32[np.ndarray, "n d"] = _unit_rows(rows["embedding"].combine_chunks())

    def nests(self, rows: Int64[np.ndarray, " k"]) -> list[Nest]:
        """The nests in these rows."""
        return to_nests(self._rows.take(pa.array(rows)))

    def unit_query(self, query: Float32[np.ndarray, " d"]) -> Float32[np.ndarray, " d"]:
        """The query as a unit vector. Raises InputError: it is of another length, not finite, or zero."""
        vector = np.asarray(query, dtype=np.float32)
        if vector.shape != self.matrix.shape[1:]:
            raise InputError(
                f"expected an embedding of shape {self.matrix.shape[1:]}, got {vector.shape}; "
                "embed with the encoder whose id was given"
            )
        if not np.isfinite(vector).all() or not vector.any():
            raise InputError("expected an embedding that is finite and not zero; check the encoder")
        return _unit(vector[None])[0]


class Snapshot:
    """Both tables, and how they meet: what a query needs is worked out when it is asked for first."""

    def __init__(self, nests: NestIndex, records: RecordIndex) -> None:
        self.nests = nests
        self.records = records
        self._searchable: dict[tuple[str, str], Searchable] = {}

    def searchable(self, encoder_id: str, fingerprint: str, indexes: IndexFiles) -> Searchable:
        """The nests embedded by the encoder that have an "ok" record from such a device."""
        key = encoder_id, fingerprint
        if key not in self._searchable:
            embeddings = self.nests.by_encoder[encoder_id]
            usable = self.records.usable(fingerprint)[self.records.groups(embeddings.digests)]
            found, made = arranged(
                embeddings.matrix, embeddings.row_ids, np.flatnonzero(usable), indexes.kept(*key)
            )
            if made is not None:
                indexes.keep(*key, made)
            self._searchable[key] = found
        return self._searchable[key]


def _unit_rows(embeddings: pa.ListArray) -> Float32[np.ndarray, "n d"]:
    widths = pc.unique(pc.list_value_length(embeddings)).to_pylist()
    if len(widths) != 1:
        raise StoreError(f"expected embeddings of one length for one encoder, got lengths {sorted(widths)}")
    matrix = embeddings.flatten().to_numpy().reshape(len(embeddings), widths[0])
    return _unit(matrix)


def _unit(matrix: Float32[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
    wide = matrix.astype(np.float64)  # the squares of what float32 can hold, float32 cannot
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)


def _is_unsorted(column: pa.ChunkedArray) -> bool:
    return len(column) > 1 and bool(pc.any(pc.less(column[1:], column[:-1])).as_py())


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """(code of each row, what the codes stand for)."""
    encoded = pa.chunked_array(column).combine_chunks().dictionary_encode()
    return _as_array(encoded.indices), encoded.dictionary


def _as_array(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    return values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
