"""The schedule store: what has been measured before, found again by the likeness of programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32

from gnnperf.errors import InputError
from gnnperf.store.exchange import Batch, read_export, write_export
from gnnperf.store.index_files import IndexFiles
from gnnperf.store.pruning import prunable_embeddings, prunable_records
from gnnperf.store.results import Changed, Neighbour, StoredNest, StoreInfo
from gnnperf.store.rows import Unseen, without
from gnnperf.store.schema import (
    NESTS,
    RECORDS,
    SCHEMA_VERSION,
    Nest,
    Record,
    nest_rows,
    record_rows,
    to_graph_json,
    to_records,
)
from gnnperf.store.snapshot import NEST_COLUMNS, NestIndex, RecordIndex, Snapshot
from gnnperf.store.tables import Table, is_local, open_tables

_BATCH = 256


class Store:
    """Nests with their embeddings, and the records of measurements on them.

    A store is a folder, or a URI of object storage (`s3://`, `gs://`, `az://`) or of a LanceDB server
    (`db://`); the API is the same. Any number of processes may read and write it at once, and each call
    sees what all of them have committed. A call that returns has stored its rows; a process killed
    during a call loses at most the rows of that call. Do not fork a process that has opened a store.

    Search is exact, a matrix product over all embeddings of one encoder that a device can use, held in
    memory, up to 100,000 of them. Of more it is approximate: it finds 99 of 100 of the nearest. What it needs
    for that is made by the first search, in half a minute for a million nests, and kept in the store's folder
    or, where that cannot be written, in the user's cache. Distances are exact in any case.

    Every method raises StoreError when the store cannot be read or written.

    Example:
        store = Store.open("store", create=True)
        store.add_nest(Nest(graph.digest, "atax", "matvec", "dace"), graph.to_json(), embedding, encoder_id)
        store.add_records([record])
        for neighbour in store.nearest(embedding, 5, encoder_id, device.fingerprint): ...
    """

    def __init__(self, location: str, nests: Table, records: Table) -> None:
        self.location = location
        self._nests = nests
        self._records = records
        self._indexes = IndexFiles(location)
        self._loaded: tuple[tuple[int, int], Snapshot] | None = None
        self._widths: dict[str, int] = {}  # of the embeddings of each encoder

    @classmethod
    def open(cls, location: str | Path, create: bool = False) -> Store:
        """Open the store at a folder or URI, and load it.

        Raises InputError: no store there, and not `create`. Raises StoreError: corrupt, of another schema
        (got, expected), no permission.
        """
        place = str(Path(location).expanduser()) if is_local(str(location)) else str(location)
        store = cls(place, *open_tables(place, create))
        store._snapshot()
        return store

    # ----------------------------------------------------------------------- reading

    def nearest(
        self,
        embedding: Float32[np.ndarray, " d"],
        k: int,
        encoder_id: str,
        fingerprint: str,
        exclude: Collection[str] = (),
    ) -> list[Neighbour]:
        """The k nests nearest to an embedding that have an "ok" record usable on a device, nearest first.

        Args:
            embedding: f32[d], made by the encoder `encoder_id`; need not be normalised.
            k: fewer are returned where fewer are known.
            fingerprint: of the device; records of other fingerprints are not used.
            exclude: digests of nests to pass over.

        Raises InputError: the embedding is of another length, not finite, or zero.
        """
        snapshot = self._snapshot()
        embeddings = snapshot.nests.by_encoder.get(encoder_id)
        if embeddings is None:
            return []
        query = embeddings.unit_query(embedding)
        searchable = snapshot.searchable(encoder_id, fingerprint, self._indexes)
        rows, distances = searchable.search(query, k + len(exclude))
        pairs = zip(embeddings.nests(rows), distances.tolist(), strict=True)
        found = [(nest, distance) for nest, distance in pairs if nest.digest not in exclude][:k]
        of_each = snapshot.records.of([nest.digest for nest, _ in found], fingerprint)
        return [Neighbour(*pair, of_one) for pair, of_one in zip(found, of_each, strict=True)]

    @property
    def devices(self) -> tuple[str, ...]:
        """Fingerprints of the devices that the store has records of."""
        return self._snapshot().records.devices

    def records(self, digest: str, fingerprint: str | None = None) -> tuple[Record, ...]:
        """The records of a nest, of one device or of all: "ok" ones by falling speedup, then the failures."""
        return self._snapshot().records.of([digest], fingerprint)[0]

    def graph_json(self, digest: str) -> str:
        """The program graph of a nest. Raises InputError if the store does not know the nest."""
        return self._graphs([digest])[digest]

    def entries(self, encoder_id: str) -> Iterator[StoredNest]:
        """Every nest with its graph, its records and its embedding by one encoder, in no order."""
        snapshot = self._snapshot()
        digests = snapshot.nests.digests()
        embedded = snapshot.nests.by_encoder.get(encoder_id)
        vectors = dict(zip(embedded.digests.to_pylist(), embedded.matrix, strict=True)) if embedded else {}
        for start in range(0, len(digests), _BATCH):
            batch = digests[start : start + _BATCH]
            graphs = self._graphs(batch)
            for nest, records in zip(snapshot.nests.nests(batch), snapshot.records.of(batch), strict=True):
                yield StoredNest(nest, graphs[nest.digest], vectors.get(nest.digest), records)

    def stale(self, encoder_id: str) -> list[str]:
        """Digests of the nests this encoder has not embedded: `nearest` cannot find them."""
        index = self._snapshot().nests
        embedded = index.by_encoder.get(encoder_id)
        known = set(embedded.digests.to_pylist()) if embedded else set()
        return [digest for digest in index.digests() if digest not in known]

    def info(self) -> StoreInfo:
        """What is in the store."""
        snapshot = self._snapshot()
        nests, records = snapshot.nests, snapshot.records
        return StoreInfo(
            location=self.location,
            schema_version=SCHEMA_VERSION,
            nests=len(nests.digests()),
            records=records.rows.num_rows,
            encoders=_counts(nests.rows["encoder_id"]),
            devices=_counts(records.rows["device_fingerprint"]),
            statuses=_counts(records.rows["status"]),
            families=_counts(records.rows["family"]),
            versions={"nests": self._nests.version(), "records": self._records.version()},
            size_bytes=_size_bytes(self.location) if is_local(self.location) else None,
        )

    # ----------------------------------------------------------------------- writing

    def add_nest(
        self, nest: Nest, graph_json: str, embedding: Float32[np.ndarray, " d"], encoder_id: str
    ) -> None:
        """Add a nest, or update its embedding by this encoder. See `add_nests`."""
        self.add_nests([nest], [graph_json], np.asarray(embedding)[None], encoder_id)

    def add_nests(
        self,
        nests: Sequence[Nest],
        graphs_json: Sequence[str],
        embeddings: Float32[np.ndarray, "n d"],
        encoder_id: str,
    ) -> None:
        """Add nests, or update their embeddings by this encoder, in one commit.

        An embedding belongs to one encoder. A nest may have one of each: those who share a store need not
        all change to a new encoder at once.

        Raises InputError: lengths differ, or an embedding is not finite or zero.
        """
        self._append_nests(nest_rows(nests, graphs_json, embeddings, encoder_id))

    def add_records(self, records: Iterable[Record]) -> list[Record]:
        """Add records in one commit; they are returned with their ids.

        Records are found by `nearest` once their nest is in the store. Raises InputError: a field is wrong.
        """
        rows = record_rows(records)
        self._records.append(rows)
        return to_records(rows)

    def reembed(self, encoder_id: str, embed: Callable[[list[str]], Float32[np.ndarray, "n d"]]) -> int:
        """Embed the nests that this encoder has not embedded yet; how many they were.

        Interrupted, it goes on where it was when it is called again.

        Args:
            embed: program graphs as JSON -> f32[n, d].
        """
        stale = self.stale(encoder_id)
        index = self._snapshot().nests
        for start in range(0, len(stale), _BATCH):
            digests = stale[start : start + _BATCH]
            graphs = self._graphs(digests)
            texts = [graphs[digest] for digest in digests]
            self.add_nests(index.nests(digests), texts, embed(texts), encoder_id)
        return len(stale)

    def merge(self, other: Store) -> Changed:
        """Add what another store has and this one has not. Of an embedding both have, this store's stays."""
        return self._absorb(other._batches())

    def prune(
        self,
        keep_best: int | None = None,
        failures_older_than: timedelta | None = None,
        encoder_id: str | None = None,
    ) -> Changed:
        """Remove what is not wanted any more, and compact the files.

        Args:
            keep_best: for each (nest, device fingerprint, baseline) keep the newest "ok" record of each of
                so many fastest schedules.
            failures_older_than: remove older records whose status is not "ok".
            encoder_id: remove the embeddings of other encoders of nests that this encoder has embedded.

        Embeddings that were updated are removed in any case. Returns how many rows were removed.
        """
        if keep_best is not None and keep_best < 1:
            raise InputError(f"expected to keep at least 1 record of each nest, got {keep_best}")
        snapshot = self._snapshot()
        nests, records = snapshot.nests, snapshot.records
        before = datetime.now(UTC) - failures_older_than if failures_older_than is not None else None
        nest_ids = prunable_embeddings(nests, encoder_id)
        record_ids = prunable_records(records, keep_best, before)
        self._records.delete(record_ids)
        self._nests.delete(nest_ids)
        self._records.compact()
        self._nests.compact()
        return Changed(len(nest_ids), len(record_ids))

    def export(self, path: str | Path) -> Changed:
        """Write everything to one file of JSON lines, compressed with zstd (`.jsonl.zst`).

        Raises InputError: the file cannot be written.
        """
        return Changed(*write_export(Path(path), self._batches()))

    def import_(self, path: str | Path) -> Changed:
        """Add what an exported file has and this store has not.

        Raises InputError: no such file, or not an intact export; what was read until then has been added.
        """
        return self._absorb(read_export(Path(path)))

    # ----------------------------------------------------------------------- inside

    def _snapshot(self) -> Snapshot:
        """Both tables at their newest versions; what has not changed is not loaded again."""
        versions = self._nests.version(), self._records.version()
        if self._loaded is None or self._loaded[0] != versions:
            (old_nests, old_records), old = self._loaded or ((-1, -1), None)
            nests = old.nests if old and old_nests == versions[0] else self._load_nests()
            records = old.records if old and old_records == versions[1] else RecordIndex(self._records.read())
            self._loaded = versions, Snapshot(nests, records)
        return self._loaded[1]

    def _load_nests(self) -> NestIndex:
        nests = NestIndex(self._nests.read(NEST_COLUMNS))
        self._widths = {name: of_one.matrix.shape[1] for name, of_one in nests.by_encoder.items()}
        return nests

    def _graphs(self, digests: Sequence[str]) -> dict[str, str]:
        rows = self._nests.find("digest", digests, ("digest", "graph"))
        blobs = dict(zip(rows["digest"].to_pylist(), rows["graph"].to_pylist(), strict=True))
        for digest in digests:
            if digest not in blobs:
                raise InputError(f"expected a nest of the store {self.location}, got the digest {digest!r}")
        return {digest: to_graph_json(blob) for digest, blob in blobs.items()}

    def _append_nests(self, rows: pa.Table) -> None:
        widths = dict(self._widths)
        lengths = pc.list_value_length(rows["embedding"]).to_pylist()
        for encoder_id, length in zip(rows["encoder_id"].to_pylist(), lengths, strict=True):
            if length != widths.setdefault(encoder_id, length):
                raise InputError(
                    f"expected embeddings of length {widths[encoder_id]} from encoder {encoder_id}, "
                    f"got {length}; another encoder needs another id"
                )
        self._nests.append(rows)
        self._widths = widths

    def _batches(self) -> Iterator[Batch]:
        """Everything in the store but what has been superseded: (rows of nests, rows of records)."""
        snapshot = self._snapshot()
        nests, records = snapshot.nests, snapshot.records
        for rows in self._nests.batches():
            yield without(rows, nests.superseded), RECORDS.empty_table()
        for rows in self._records.batches():
            yield NESTS.empty_table(), without(rows, records.superseded)

    def _absorb(self, batches: Iterable[Batch]) -> Changed:
        snapshot = self._snapshot()
        embeddings = Unseen(("digest", "encoder_id"), snapshot.nests.rows)
        records = Unseen(("record_id",), snapshot.records.rows)
        added = [0, 0]
        for nest_batch, record_batch in batches:
            new_nests, new_records = embeddings.take(nest_batch), records.take(record_batch)
            self._append_nests(new_nests)
            self._records.append(new_records)
            added[0] += new_nests.num_rows
            added[1] += new_records.num_rows
        return Changed(*added)


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value occurs, the most frequent first."""
    return dict(Counter(column.to_pylist()).most_common())


def _size_bytes(folder: str) -> int:
    total = 0
    for file in Path(folder).rglob("*"):
        with suppress(FileNotFoundError):  # another process is compacting
            total += file.stat().st_size if file.is_file() else 0
    return total
