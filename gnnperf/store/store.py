"""The schedule store: what has been measured before, found again by the likeness of programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32

from gnnperf.errors import InputError
from gnnperf.store.checks import digest_problem, graph_problem, nest_problem, record_problem
from gnnperf.store.exchange import Batch, read_export, write_export
from gnnperf.store.index_files import IndexFiles
from gnnperf.store.pruning import prunable_embeddings, prunable_records
from gnnperf.store.results import Changed, Neighbour, StoredNest, StoreInfo
from gnnperf.store.rows import FirstOfEachKey, without
from gnnperf.store.schema import (
    NESTS,
    RECORDS,
    SCHEMA_VERSION,
    Nest,
    Record,
    nest_rows,
    record_rows,
    to_graph_json,
    to_nests,
    to_records,
)
from gnnperf.store.snapshot import Snapshot
from gnnperf.store.tables import Table, is_local, open_tables
from gnnperf.store.vetting import Vetting

NO_WIDTHS: Mapping[str, int] = MappingProxyType({})
_BATCH = 256


class Store:
    """Nests with their embeddings, and the records of measurements on them.

    A store is a folder, or a URI of object storage (`s3://`, `gs://`, `az://`) or of a LanceDB server
    (`db://`); the API is the same. Any number of processes may read and write it at once, and each call
    sees what all of them have committed. A call that returns has stored its rows; a process killed
    during a call loses at most the rows of that call. A fork of the process must not use it.

    Search is exact, a matrix product over all embeddings of one encoder that a device can use, held in
    memory, up to 100,000 of them. Of more it is approximate: it finds 99 of 100 of the nearest. What it needs
    for that is made by the first search, in half a minute for a million nests, and kept in the store's folder
    or, where that cannot be written, in the user's cache. Distances are exact in any case.

    A store is a folder that others may write to, so it hands out only what passes a few checks. What does
    not is left out, and counted in `left_out`.

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
        self._loaded = Snapshot()
        self._widths: dict[str, int] = {}  # of the embeddings of encoders that this process uses
        self._left_out: dict[str, str] = {}  # why, by digest of the nest or id of the record

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
        snapshot, shape = self._snapshot(), np.shape(embedding)
        stored = snapshot.nests.embeddings(encoder_id, *shape[:1]) or snapshot.nests.embeddings(encoder_id)
        width = self._checked_width(encoder_id, shape, stored.matrix.shape[1] if stored else None)
        embeddings = snapshot.nests.embeddings(encoder_id, width)
        for digest in snapshot.nests.unusable(encoder_id, width):
            self._left_out[digest] = "an embedding that this encoder cannot have made"
        if embeddings is None:
            return []
        query = embeddings.unit_query(embedding)
        self._widths[encoder_id] = width
        searchable = snapshot.searchable(embeddings, encoder_id, fingerprint, self._indexes)
        passed_over, wanted = set(exclude), k
        while True:
            rows, distances = searchable.search(query, wanted + len(passed_over))
            nests = to_nests(embeddings.rows.take(pa.array(rows)))
            near = [n for n, nest in enumerate(nests) if nest.digest not in passed_over][:wanted]
            of_each = snapshot.records.of(embeddings.nest[rows[near]], fingerprint)
            found = [
                Neighbour(
                    nests[n],
                    float(distances[n]),
                    self._believed(records) if self._is_believed(nests[n]) else (),
                )
                for n, records in zip(near, of_each, strict=True)
            ]
            unusable = {n.nest.digest for n in found if all(r.status != "ok" for r in n.records)}
            if not unusable:
                return found[:k]
            passed_over |= unusable  # others take their places
            wanted *= 2 if 2 * len(unusable) > len(found) else 1

    @property
    def left_out(self) -> Counter[str]:
        """Nests and records that this object came across and does not believe, by reason: see
        `gnnperf.store.checks`."""
        return Counter(self._left_out.values())

    @property
    def devices(self) -> tuple[str, ...]:
        """Fingerprints of the devices of which the store has a record that it believes."""
        records = self._snapshot().records
        return tuple(name for name in records.devices if any(map(self._believed, records.of_device(name))))

    def records(self, digest: str, fingerprint: str | None = None) -> tuple[Record, ...]:
        """The records of a nest, of one device or of all: "ok" ones by falling speedup, then the failures."""
        snapshot = self._snapshot()
        return self._believed(snapshot.records_of([digest], fingerprint)[0])

    def graph_json(self, digest: str) -> str:
        """The program graph of a nest. Raises InputError if the store does not know the nest, or its graph is
        damaged."""
        blob = self._graphs([digest]).get(digest)
        if blob is None:
            raise InputError(f"expected a nest of the store {self.location}, got the digest {digest!r}")
        return to_graph_json(blob)

    def entries(self, encoder_id: str) -> Iterator[StoredNest]:
        """Every nest with its graph, its records and its embedding by one encoder, in no order."""
        snapshot = self._snapshot()
        digests = snapshot.nests.digests()
        embedded = snapshot.nests.embeddings(encoder_id, self._widths.get(encoder_id))
        # Of those that were embedded again, the last.
        vectors = (
            dict(zip(embedded.rows["digest"].to_pylist(), embedded.matrix, strict=True)) if embedded else {}
        )
        for start in range(0, len(digests), _BATCH):
            batch = digests[start : start + _BATCH]
            graphs = self._believed_graphs(batch, graph_problem)
            for nest, records in zip(snapshot.nests.nests(batch), snapshot.records_of(batch), strict=True):
                if nest.digest in graphs and self._is_believed(nest):
                    vector = vectors.get(nest.digest)
                    yield StoredNest(nest, graphs[nest.digest], vector, self._believed(records))

    def stale(self, encoder_id: str) -> list[str]:
        """Digests of the nests this encoder has not embedded: `nearest` cannot find them."""
        index = self._snapshot().nests
        embedded = index.embeddings(encoder_id, self._widths.get(encoder_id))
        known = set(embedded.rows["digest"].to_pylist()) if embedded else set()
        return [digest for digest in index.digests() if digest not in known]

    def widths(self) -> dict[str, int]:
        """Of the embeddings of every encoder: the width that most of them have."""
        return self._snapshot().nests.widths()

    def info(self) -> StoreInfo:
        """What is in the store."""
        snapshot = self._snapshot()
        nests, records = snapshot.nests.rows, snapshot.records.rows
        return StoreInfo(
            location=self.location,
            schema_version=SCHEMA_VERSION,
            nests=len(pc.unique(nests["digest"])),
            records=records.num_rows,
            encoders=_counts(nests["encoder_id"]),
            devices=_counts(records["device_fingerprint"]),
            statuses=_counts(records["status"]),
            families=_counts(records["family"]),
            versions={"nests": self._nests.version(), "records": self._records.version()},
            size_bytes=size_bytes(self.location) if is_local(self.location) else None,
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
        rows = nest_rows(nests, graphs_json, embeddings, encoder_id)
        if len(nests):
            self._widths[encoder_id] = self._checked_width(encoder_id, np.shape(embeddings)[1:])
        self._nests.append(rows)

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
        done = 0
        for start in range(0, len(stale), _BATCH):
            graphs = self._believed_graphs(stale[start : start + _BATCH], digest_problem)
            if graphs:
                self.add_nests(
                    index.nests([*graphs]), [*graphs.values()], embed([*graphs.values()]), encoder_id
                )
            done += len(graphs)
        return done

    def merge(self, other: Store, widths: Mapping[str, int] = NO_WIDTHS) -> Changed:
        """Add what another store has and this one has not, and believes (see `check`). Of an embedding both
        have, this store's stays."""
        vetting = self._vetting(widths)
        return self._absorb(other._batches(vetting), vetting)

    def check(self, widths: Mapping[str, int] = NO_WIDTHS) -> Changed:
        """How many rows pass all checks that are made of what is imported, and why the others do not.

        Graphs are parsed and named anew, ids are computed from what they are of, figures and schedules have
        to be such as gnnperf writes.

        Args:
            widths: of the embeddings of encoders that are known. Of others, those of the width that most of
                the store's have pass.
        """
        return self._check(self._vetting(widths))

    def _check(self, vetting: Vetting) -> Changed:
        nests = sum(vetting.nest_rows(rows).num_rows for rows in self._nests.batches())
        records = sum(vetting.record_rows(rows).num_rows for rows in self._records.batches())
        return Changed(nests, records, vetting.refused, tuple(vetting.reasons))

    def _vetting(self, widths: Mapping[str, int]) -> Vetting:
        return Vetting({**self.widths(), **self._widths, **widths})

    def prune(
        self,
        keep_best: int | None = None,
        failures_older_than: timedelta | None = None,
        encoder_id: str | None = None,
        failed_check: bool = False,
        widths: Mapping[str, int] = NO_WIDTHS,
    ) -> Changed:
        """Remove what is not wanted any more, and compact the files.

        Args:
            keep_best: for each (nest, device fingerprint, baseline) keep the newest "ok" record of each of
                so many fastest schedules.
            failures_older_than: remove older records whose status is not "ok".
            encoder_id: remove the embeddings of other encoders of nests that this encoder has embedded.
            failed_check: remove what `check` does not let pass, which is told `widths`.

        Embeddings that were updated are removed in any case. Returns how many rows were removed.
        """
        if keep_best is not None and keep_best < 1:
            raise InputError(f"expected to keep at least 1 record of each nest, got {keep_best}")
        failed: tuple[list[int | None], list[int | None]] = ([], [])
        if failed_check:
            vetting = self._vetting(widths)
            self._check(vetting)
            failed = vetting.row_ids
            self._nests.delete(failed[0])
            self._records.delete(failed[1])
        snapshot = self._snapshot()
        nests, records = snapshot.nests, snapshot.records
        before = datetime.now(UTC) - failures_older_than if failures_older_than is not None else None
        nest_ids = prunable_embeddings(nests, encoder_id)
        record_ids = prunable_records(records, keep_best, before)
        self._records.delete(record_ids)
        self._nests.delete(nest_ids)
        self._records.compact()
        self._nests.compact()
        return Changed(len(failed[0]) + len(nest_ids), len(failed[1]) + len(record_ids))

    def export(self, path: str | Path) -> Changed:
        """Write everything that passes `check` to one file of JSON lines, compressed with zstd
        (`.jsonl.zst`).

        Raises InputError: the file cannot be written.
        """
        vetting = self._vetting(NO_WIDTHS)
        written = write_export(Path(path), self._batches(vetting))
        return Changed(*written, vetting.refused, tuple(vetting.reasons))

    def import_(self, path: str | Path, widths: Mapping[str, int] = NO_WIDTHS) -> Changed:
        """Add what an exported file has and this store has not, and believes (see `check`).

        Raises InputError: no such file, or not an intact export; what was read until then has been added.
        """
        vetting = self._vetting(widths)
        return self._absorb(read_export(Path(path), vetting), vetting)

    # ----------------------------------------------------------------------- inside

    def _snapshot(self) -> Snapshot:
        """Both tables at their newest versions."""
        self._loaded = self._loaded.refreshed(self._nests, self._records)
        return self._loaded

    def _checked_width(self, encoder_id: str, shape: tuple[int, ...], stored: int | None = None) -> int:
        """The width of an encoder's embeddings, of which one has some shape: this process may know the
        encoder, those who wrote into the store need not. stored: the width there, where it does not."""
        width = self._widths.get(encoder_id, stored)
        if len(shape) != 1 or width not in (None, *shape):
            raise InputError(
                f"expected embeddings of length {width or 'd'} from encoder {encoder_id}, got shape {shape}; "
                "another encoder needs another id"
            )
        return shape[0]

    def _believed(self, records: Sequence[Record]) -> tuple[Record, ...]:
        """Without those that fail the cheap checks, which are left out and counted."""
        found = []
        for record in records:
            if problem := record_problem(record):
                self._left_out[record.record_id] = problem
            else:
                found.append(record)
        return tuple(found)

    def _is_believed(self, nest: Nest) -> bool:
        problem = nest_problem(nest)
        if problem:
            self._left_out[nest.digest] = problem
        return not problem

    def _graphs(self, digests: Sequence[str]) -> dict[str, bytes]:
        """Compressed graphs, of the nests that have one."""
        rows = self._nests.find("digest", digests, ("digest", "graph"))
        blobs: dict[str, bytes] = {}
        for digest, blob in zip(rows["digest"].to_pylist(), rows["graph"].to_pylist(), strict=True):
            known = blobs.get(digest)
            # One for each encoder: where they differ, somebody wrote a wrong one.
            if blob is not None and (known is None or (blob != known and _is_of(digest, blob))):
                blobs[digest] = blob
        return blobs

    def _believed_graphs(
        self, digests: Sequence[str], problem_of: Callable[[str, str], str]
    ) -> dict[str, str]:
        """Graphs as JSON, in this order. problem_of: (JSON, digest) -> why it is left out, or nothing."""
        found, blobs = {}, self._graphs(digests)
        for digest in digests:
            try:
                text = to_graph_json(blobs[digest])
                problem = problem_of(text, digest)
            except KeyError:
                problem = "a nest without a graph"
            except InputError as error:
                problem = str(error)
            if problem:
                self._left_out[digest] = problem
            else:
                found[digest] = text
        return found

    def _batches(self, vetting: Vetting) -> Iterator[Batch]:
        """Everything in the store that passes, but what has been superseded: (rows of nests, of records)."""
        snapshot = self._snapshot()
        nests, records = snapshot.nests, snapshot.records
        for rows in self._nests.batches():
            yield vetting.nest_rows(without(rows, nests.superseded)), RECORDS.empty_table()
        for rows in self._records.batches():
            yield NESTS.empty_table(), vetting.record_rows(without(rows, records.superseded))

    def _absorb(self, batches: Iterable[Batch], vetting: Vetting) -> Changed:
        snapshot = self._snapshot()
        embeddings = FirstOfEachKey(("digest", "encoder_id"), snapshot.nests.rows)
        records = FirstOfEachKey(("record_id",), snapshot.records.rows)
        added = [0, 0]
        for nest_batch, record_batch in batches:
            new_nests, new_records = embeddings.take(nest_batch), records.take(record_batch)
            self._nests.append(new_nests)
            self._records.append(new_records)
            added[0] += new_nests.num_rows
            added[1] += new_records.num_rows
        return Changed(added[0], added[1], vetting.refused, tuple(vetting.reasons))


def _is_of(digest: str, blob: bytes) -> bool:
    try:
        return not digest_problem(to_graph_json(blob), digest)
    except InputError:
        return False


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value occurs, the most frequent first."""
    return dict(Counter(column.to_pylist()).most_common())


def size_bytes(folder: str) -> int:
    """Of all files in a folder that other processes may be writing to."""
    total = 0
    for file in Path(folder).rglob("*"):
        with suppress(FileNotFoundError):  # another process is compacting
            total += file.stat().st_size if file.is_file() else 0
    return total
