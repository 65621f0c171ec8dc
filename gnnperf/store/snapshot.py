"""The tables in memory, at one version of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float32, Int64

from gnnperf.errors import InputError
from gnnperf.store.index_files import IndexFiles
from gnnperf.store.rows import repeated_row_ids, without
from gnnperf.store.schema import FIGURES, Nest, Record, to_nests, to_records
from gnnperf.store.searchable import Searchable, arranged

NEST_COLUMNS = ("row_id", "digest", "kernel", "family", "frontend", "encoder_id", "embedding", "updated")
"""All but the graphs, which are fetched one by one when they are asked for."""


class RecordIndex:
    """The records, grouped by nest; in each group the usable come first, by falling speedup."""

    def __init__(self, rows: pa.Table) -> None:
        rows = complete(rows, FIGURES).combine_chunks()
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
    """The nests, and the embeddings of each encoder as one matrix.

    Embeddings that differ in width are not of one encoder, whatever they say: each width is apart.
    """

    def __init__(self, rows: pa.Table) -> None:
        rows = complete(rows)
        rows = rows.sort_by("updated") if _is_unsorted(rows["updated"]) else rows
        rows = rows.append_column("width", pc.list_value_length(rows["embedding"])).combine_chunks()
        self._embedded: dict[tuple[str, int], Embeddings] = {}
        for encoder_id in pc.unique(rows["encoder_id"]).to_pylist():
            of_encoder = rows.filter(pc.equal(rows["encoder_id"], encoder_id))
            for width in pc.unique(of_encoder["width"]).to_pylist():
                of_width = of_encoder.filter(pc.equal(of_encoder["width"], width))
                self._embedded[encoder_id, width] = Embeddings(of_width, width)
        embedded = self._embedded.values()
        self.superseded: list[int] = [row_id for found in embedded for row_id in found.superseded]
        unusable = [row_id for found in embedded for row_id in found.unusable["row_id"].to_pylist()]
        self.rows: pa.Table = without(rows.drop_columns(["embedding"]), [*self.superseded, *unusable])

    def embeddings(self, encoder_id: str, width: int | None = None) -> Embeddings | None:
        """What an encoder has embedded. width: of its embeddings; None: the width that most of them have."""
        if width is not None:
            return self._embedded.get((encoder_id, width))
        of_encoder = [found for (name, _), found in self._embedded.items() if name == encoder_id]
        return max(of_encoder, key=lambda found: len(found.row_ids), default=None)

    def unusable(self, encoder_id: str, width: int) -> Iterator[str]:
        """Digests of nests with what an encoder cannot have made: of another width, not finite, zero."""
        for (name, other), found in self._embedded.items():
            if name == encoder_id:
                yield from found.unusable["digest"].to_pylist()
                yield from [] if other == width else found.digests.to_pylist()

    def widths(self) -> dict[str, int]:
        """Of the embeddings of every encoder: the width that most of them have."""
        names = {name for name, _ in self._embedded}
        found = {name: self.embeddings(name) for name in names}
        return {name: of_one.matrix.shape[1] for name, of_one in found.items() if of_one is not None}

    def digests(self) -> list[str]:
        """Of all nests, each once."""
        return pc.unique(self.rows["digest"]).to_pylist()

    def nests(self, digests: Sequence[str]) -> list[Nest]:
        """The nests with these digests, in this order."""
        rows = self.rows.filter(pc.is_in(self.rows["digest"], pa.array(digests, pa.string())))
        found = {nest.digest: nest for nest in to_nests(rows)}
        return [found[digest] for digest in digests]


class Embeddings:
    """The nests one encoder has embedded. unusable: `row_id` and `digest` of those whose embedding has no
    direction. superseded: `row_id` of those that were embedded again."""

    def __init__(self, rows: pa.Table, width: int) -> None:
        """width: of all embeddings."""
        rows = rows.combine_chunks()
        values = rows["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        matrix = values.reshape(rows.num_rows, width).astype(np.float64)  # float32 cannot hold their squares
        norms = np.linalg.norm(matrix, axis=1)
        usable = np.isfinite(norms) & (norms > 0)
        self.unusable: pa.Table = rows.select(["row_id", "digest"]).filter(pa.array(~usable))
        self.superseded: list[int] = repeated_row_ids(rows.filter(pa.array(usable)), ["digest"])
        if self.unusable.num_rows or self.superseded:
            usable &= ~np.isin(_as_array(rows["row_id"]), self.superseded)
            rows, matrix, norms = rows.filter(pa.array(usable)), matrix[usable], norms[usable]
        self._rows: pa.Table = rows.drop_columns(["embedding"]).combine_chunks()
        self.digests: pa.Array = rows["digest"].combine_chunks()
        self.row_ids: Int64[np.ndarray, " n"] = _as_array(rows["row_id"])
        self.matrix: Float32[np.ndarray, "n d"] = (matrix / norms[:, None]).astype(np.float32)

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
        self._searchable: dict[tuple[str, str, int], Searchable] = {}

    def searchable(
        self, embeddings: Embeddings, encoder_id: str, fingerprint: str, indexes: IndexFiles
    ) -> Searchable:
        """The nests embedded by the encoder that have an "ok" record from such a device."""
        key = encoder_id, fingerprint, embeddings.matrix.shape[1]
        if key not in self._searchable:
            usable = self.records.usable(fingerprint)[self.records.groups(embeddings.digests)]
            found, made = arranged(
                embeddings.matrix, embeddings.row_ids, np.flatnonzero(usable), indexes.kept(*key[:2])
            )
            if made is not None:
                indexes.keep(*key[:2], made)
            self._searchable[key] = found
        return self._searchable[key]


def complete(rows: pa.Table, may_lack: Collection[str] = ()) -> pa.Table:
    """The rows that lack no value but of some columns: gnnperf writes no others."""
    for name in rows.column_names:
        if name not in may_lack and rows[name].null_count:
            rows = rows.filter(pc.is_valid(rows[name]))
    return rows


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
