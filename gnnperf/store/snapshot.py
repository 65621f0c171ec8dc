"""The tables in memory, at one version of each."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float32, Int32, Int64

from gnnperf.errors import InputError
from gnnperf.store.index_files import IndexFiles
from gnnperf.store.rows import joined, repeated_row_ids, without
from gnnperf.store.schema import FIGURES, NESTS, RECORDS, Nest, Record, to_nests, to_records
from gnnperf.store.searchable import Searchable, arranged
from gnnperf.store.tables import Seen, Table

NEST_COLUMNS = ("row_id", "digest", "kernel", "family", "frontend", "encoder_id", "embedding", "updated")
"""All but the graphs, which are fetched one by one when they are asked for."""
_FEW = 64
_UNSORTED = 4096
"""Rows beside those that are sorted by nest, at least."""


class Codes:
    """Numbers of names, in the order in which these came. A name keeps its number."""

    def __init__(self) -> None:
        self._names: pa.Table = pa.schema([("name", pa.string())]).empty_table()

    def __len__(self) -> int:
        return self._names.num_rows

    @property
    def names(self) -> pa.ChunkedArray:
        return self._names["name"]

    def of(self, names: pa.ChunkedArray, add: bool = False) -> Int32[np.ndarray, " n"]:
        """The number of each; -1: it has none, unless it is to be added."""
        found = names.combine_chunks().dictionary_encode()
        known = _as_array(pc.fill_null(pc.index_in(self.names, found.dictionary), -1))
        codes = np.full(len(found.dictionary), -1, np.int32)
        places = np.flatnonzero(known >= 0)
        codes[known[places]] = places
        if add:
            new = np.flatnonzero(codes < 0)
            codes[new] = len(self) + np.arange(len(new))
            self._names = joined(self._names, pa.table({"name": found.dictionary.take(pa.array(new))}))
        return codes[_as_array(found.indices)]


class RecordIndex:
    """The records by nest."""

    def __init__(self, nests: Codes) -> None:
        self.all_rows: pa.Table = RECORDS.empty_table()
        self._nests, self._devices = nests, Codes()
        self._nest = self._device = np.zeros(0, np.int32)
        self._ok = np.zeros(0, bool)
        self._by_nest: Int64[np.ndarray, " m"] = np.zeros(0, np.int64)  # the first m rows, sorted
        self._sorted: Int32[np.ndarray, " m"] = np.zeros(0, np.int32)

    def extended(self, rows: pa.Table) -> RecordIndex:
        """With these rows of `RECORDS` besides."""
        rows = complete(rows, FIGURES)
        new = copy.copy(self)
        vars(new).pop("superseded", None)
        new.all_rows = joined(self.all_rows, rows)
        new._nest = np.append(self._nest, self._nests.of(rows["nest_digest"], add=True))
        new._device = np.append(self._device, self._devices.of(rows["device_fingerprint"], add=True))
        new._ok = np.append(self._ok, _as_array(pc.equal(rows["status"], "ok")))
        if len(new._nest) - len(self._by_nest) > max(_UNSORTED, len(self._by_nest) // 8):
            new._by_nest = np.argsort(new._nest, kind="stable")
            new._sorted = new._nest[new._by_nest]
        return new

    @cached_property
    def superseded(self) -> list[int]:
        """`row_id` of records that occur again."""
        return repeated_row_ids(self.all_rows, ["record_id"])

    @property
    def rows(self) -> pa.Table:
        """Each record once."""
        return without(self.all_rows, self.superseded)

    @property
    def devices(self) -> tuple[str, ...]:
        """Fingerprints of the devices that there are records of."""
        return tuple(sorted(self._devices.names.to_pylist()))

    def of_device(self, fingerprint: str) -> Iterator[list[Record]]:
        """The records of such a device, a few at a time."""
        rows = np.flatnonzero(self._device == self._code(fingerprint))
        for start in range(0, len(rows), _FEW):
            yield to_records(self.all_rows.take(pa.array(rows[start : start + _FEW])))

    def usable(self, fingerprint: str) -> Bool[np.ndarray, " nests"]:
        """For each number of a nest, whether such a device has an "ok" record of it."""
        usable = np.zeros(len(self._nests), dtype=bool)
        usable[self._nest[self._ok & (self._device == self._code(fingerprint))]] = True
        return usable

    def of(self, nests: Int32[np.ndarray, " k"], fingerprint: str | None = None) -> list[tuple[Record, ...]]:
        """For each number of a nest its records: "ok" ones by falling speedup, then the failures."""
        device = None if fingerprint is None else self._code(fingerprint)
        chosen = [self._of_one(nest, device) for nest in nests.tolist()]
        records = to_records(self.all_rows.take(pa.array(np.concatenate([*chosen, np.zeros(0, np.int64)]))))
        ends = np.cumsum([len(rows) for rows in chosen])
        return [_ranked(records[end - len(rows) : end]) for rows, end in zip(chosen, ends, strict=True)]

    def _of_one(self, nest: int, device: int | None) -> Int64[np.ndarray, " n"]:
        first, end = np.searchsorted(self._sorted, (nest, nest + 1))
        beside = np.flatnonzero(self._nest[len(self._sorted) :] == nest)
        rows = np.append(self._by_nest[first:end], len(self._sorted) + beside)
        return rows if device is None else rows[self._device[rows] == device]

    def _code(self, fingerprint: str) -> int:
        return int(self._devices.of(pa.chunked_array([[fingerprint]]))[0])


class NestIndex:
    """The nests, and the embeddings of each encoder as one matrix.

    Embeddings that differ in width are not of one encoder, whatever they say: each width is apart.
    """

    def __init__(self, codes: Codes) -> None:
        self.codes = codes
        self._embedded: Mapping[tuple[str, int], Embeddings] = {}

    def extended(self, rows: pa.Table) -> NestIndex:
        """With these rows of `NESTS` besides, without their graphs."""
        new = copy.copy(self)
        new._embedded = dict(self._embedded)
        rows = complete(rows)
        nest = self.codes.of(rows["digest"], add=True)
        width = _as_array(pc.list_value_length(rows["embedding"]))
        names = rows["encoder_id"].combine_chunks().dictionary_encode()
        keys = _as_array(names.indices).astype(np.int64) << 32 | width
        found, group = np.unique(keys, return_inverse=True)
        if len(found) > 1:  # in one go, as strangers may name very many encoders
            order = np.argsort(group, kind="stable")
            rows, nest, group = rows.take(pa.array(order)), nest[order], group[order]
        bounds = np.searchsorted(group, np.arange(len(found) + 1)).tolist()
        for of_group, first, end in zip(found.tolist(), bounds, bounds[1:], strict=False):
            key = names.dictionary[of_group >> 32].as_py(), of_group & (2**32 - 1)
            known = new._embedded.get(key) or Embeddings(key[1])
            new._embedded[key] = known.extended(rows.slice(first, end - first), nest[first:end])
        return new

    @property
    def superseded(self) -> list[int]:
        """`row_id` of embeddings that were made again."""
        return [row_id for found in self._embedded.values() for row_id in found.superseded]

    @property
    def rows(self) -> pa.Table:
        """Each embedding that can be searched once, without the numbers."""
        found = [e.rows.filter(pa.array(e.current)) for e in self._embedded.values()]
        return pa.concat_tables([_NESTS.empty_table(), *found])

    def embeddings(self, encoder_id: str, width: int | None = None) -> Embeddings | None:
        """What an encoder has embedded. width: of its embeddings; None: the width that most of them have."""
        wanted = self.widths().get(encoder_id, -1) if width is None else width
        return self._embedded.get((encoder_id, wanted))

    def unusable(self, encoder_id: str, width: int) -> Iterator[str]:
        """Digests of nests with what an encoder cannot have made: of another width, not finite, zero."""
        for (name, other), found in self._embedded.items():
            if name == encoder_id:
                yield from found.unusable["digest"].to_pylist()
                yield from [] if other == width else found.rows["digest"].to_pylist()

    def widths(self) -> dict[str, int]:
        """Of the embeddings of every encoder: the width that most of them have."""
        ranked = sorted(self._embedded, key=lambda key: int(self._embedded[key].current.sum()))
        return dict(ranked)  # of several of a name, the last

    def digests(self) -> list[str]:
        """Of all nests, each once."""
        return pc.unique(self.rows["digest"]).to_pylist()

    def nests(self, digests: Sequence[str]) -> list[Nest]:
        """The nests with these digests, in this order."""
        rows = self.rows
        rows = rows.filter(pc.is_in(rows["digest"], pa.array(digests, pa.string())))
        found = {nest.digest: nest for nest in to_nests(rows)}
        return [found[digest] for digest in digests]


class Embeddings:
    """The nests one encoder has embedded, in the order in which they came.

    rows: without the numbers. matrix: f32[n, d], unit vectors. nest: numbers of the nests. current: rows that
    were not embedded again. unusable: `row_id` and `digest` of those whose embedding has no direction.
    """

    def __init__(self, width: int) -> None:
        self.rows: pa.Table = _NESTS.empty_table()
        self.unusable: pa.Table = self.rows.select(["row_id", "digest"])
        self.nest: Int32[np.ndarray, " n"] = np.zeros(0, np.int32)
        self.current: Bool[np.ndarray, " n"] = np.zeros(0, bool)
        self._vectors: Float32[np.ndarray, "capacity d"] = np.empty((0, width), np.float32)

    def extended(self, rows: pa.Table, nest: Int32[np.ndarray, " m"]) -> Embeddings:
        """With these rows besides, whose embeddings have the same width. nest: numbers of their nests."""
        new = copy.copy(self)
        flat = rows["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        vectors = flat.reshape(rows.num_rows, self._vectors.shape[1])
        # float32 cannot hold the squares of what it holds.
        norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))
        usable = np.isfinite(norms) & (norms > 0)
        rows = rows.select(_NESTS.names)
        if not usable.all():
            without_direction = rows.select(["row_id", "digest"]).filter(pa.array(~usable))
            new.unusable = pa.concat_tables([self.unusable, without_direction])
            rows, nest = rows.filter(pa.array(usable)), nest[usable]
            vectors, norms = vectors[usable], norms[usable]
        count = len(self.nest)
        if count + len(nest) > len(self._vectors):
            new._vectors = np.empty(((count + len(nest)) * 9 // 8, vectors.shape[1]), np.float32)
            new._vectors[:count] = self.matrix
        # Earlier objects do not look at these rows.
        np.divide(vectors, norms[:, None], out=new._vectors[count : count + len(nest)], casting="same_kind")
        _, last = np.unique(nest[::-1], return_index=True)
        newest = np.zeros(len(nest), bool)
        newest[len(nest) - 1 - last] = True
        new.rows = joined(self.rows, rows)
        new.nest = np.append(self.nest, nest)
        new.current = np.append(self.current & ~np.isin(self.nest, nest), newest)
        return new

    @property
    def matrix(self) -> Float32[np.ndarray, "n d"]:
        return self._vectors[: len(self.nest)]

    @property
    def row_ids(self) -> Int64[np.ndarray, " n"]:
        return _as_array(self.rows["row_id"])

    @property
    def superseded(self) -> list[int]:
        """`row_id` of those that were embedded again."""
        return self.row_ids[~self.current].tolist()

    def unit_query(self, query: Float32[np.ndarray, " d"]) -> Float32[np.ndarray, " d"]:
        """The query, of the width of these, as a unit vector. Raises InputError: not finite, or zero."""
        vector = np.asarray(query, dtype=np.float32)
        if not np.isfinite(vector).all() or not vector.any():
            raise InputError("expected an embedding that is finite and not zero; check the encoder")
        wide = vector.astype(np.float64)
        return (wide / np.linalg.norm(wide)).astype(np.float32)


class Snapshot:
    """Both tables, and how they meet: what a query needs is worked out when it is asked for first."""

    def __init__(self) -> None:
        codes = Codes()
        self.nests, self.records = NestIndex(codes), RecordIndex(codes)
        self._seen = Seen(), Seen()
        self._searchable: dict[tuple[str, str, int], Searchable] = {}
        self._before: Mapping[tuple[str, str, int], Searchable] = {}

    def refreshed(self, nests: Table, records: Table) -> Snapshot:
        """Of the tables as they are now. Only what is new in them is read, unless rows are gone."""
        seen_nests, new_nests, nests_stay = nests.news(self._seen[0], NEST_COLUMNS)
        seen_records, new_records, records_stay = records.news(self._seen[1], RECORDS.names)
        if (seen_nests, seen_records) == self._seen:
            return self
        new = Snapshot()
        codes = self.nests.codes
        new._seen = seen_nests, seen_records
        new.nests, new.records = self.nests, self.records
        if seen_nests != self._seen[0]:
            new.nests = (self.nests if nests_stay else NestIndex(codes)).extended(new_nests)
        if seen_records != self._seen[1]:
            new.records = (self.records if records_stay else RecordIndex(codes)).extended(new_records)
        new._before = {**self._before, **self._searchable} if nests_stay else {}
        return new

    def records_of(self, digests: Sequence[str], fingerprint: str | None = None) -> list[tuple[Record, ...]]:
        """For each digest its records: see `RecordIndex.of`."""
        return self.records.of(self.nests.codes.of(pa.chunked_array([digests], pa.string())), fingerprint)

    def searchable(
        self, embeddings: Embeddings, encoder_id: str, fingerprint: str, indexes: IndexFiles
    ) -> Searchable:
        """The nests embedded by the encoder that have an "ok" record from such a device."""
        key = encoder_id, fingerprint, embeddings.matrix.shape[1]
        if key not in self._searchable:
            usable = self.records.usable(fingerprint)[embeddings.nest] & embeddings.current
            found, made = arranged(
                embeddings.matrix, embeddings.row_ids, usable, self._before.get(key), indexes.kept(*key[:2])
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


_NESTS = pa.schema([field for field in NESTS if field.name not in ("embedding", "graph")])


def _ranked(records: Sequence[Record]) -> tuple[Record, ...]:
    """Each once, the usable first, by falling speedup."""
    each_once = {record.record_id: record for record in records}.values()
    return tuple(sorted(each_once, key=lambda r: (r.status != "ok", -(r.speedup or 0.0))))


def _as_array(values: pa.Array | pa.ChunkedArray) -> np.ndarray:
    return values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
