"""Adding, finding, merging, pruning."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from store.samples import (
    DEVICE,
    ENCODER,
    OTHER_DEVICE,
    fill,
    make_embedding,
    make_graph,
    make_nest,
    make_record,
    make_schedule,
)

from gnnperf.errors import InputError
from gnnperf.store import Changed, Nest, Store


def distances(embeddings: np.ndarray, query: np.ndarray) -> np.ndarray:
    return np.array([1 - e @ query / np.linalg.norm(e) / np.linalg.norm(query) for e in embeddings])


def test_an_empty_store_answers_everything(store: Store, tmp_path: Path) -> None:
    assert store.nearest(make_embedding(0), 3, ENCODER, DEVICE) == []
    assert store.records("no such digest") == ()
    assert store.stale(ENCODER) == []
    assert store.info().nests == store.info().records == 0
    assert store.prune(keep_best=1, failures_older_than=timedelta(0), encoder_id=ENCODER) == Changed(0, 0)
    store.export(tmp_path / "empty.jsonl.zst")
    assert store.import_(tmp_path / "empty.jsonl.zst") == store.merge(store) == Changed(0, 0)
    store.add_records([])
    assert Store.open(tmp_path / "store").info().records == 0


def test_nearest_is_exact(store: Store) -> None:
    fill(store, range(50))
    query = make_embedding(1000)
    expected = distances(np.stack([make_embedding(i) for i in range(50)]), query)

    found = store.nearest(5 * query, 7, ENCODER, DEVICE)

    order = np.argsort(expected)[:7]
    assert [n.nest for n in found] == [make_nest(int(i)) for i in order]
    assert [n.distance for n in found] == pytest.approx(expected[order], abs=1e-6)
    assert [len(n.records) for n in found] == [1] * 7
    assert len(store.nearest(query, 1000, ENCODER, DEVICE)) == 50


@pytest.mark.parametrize("scale", [1e-40, 1e-27, 1e30])
def test_the_length_of_an_embedding_does_not_matter(scale: float, store: Store) -> None:
    fill(store, range(3))
    store.add_nest(make_nest(0), make_graph(0), make_embedding(0) * np.float32(scale), ENCODER)
    for query in (make_embedding(0), make_embedding(0) * np.float32(scale)):
        (nearest,) = store.nearest(query, 1, ENCODER, DEVICE)
        assert (nearest.nest, nearest.distance) == (make_nest(0), pytest.approx(0, abs=1e-4))


def test_a_nest_is_nearest_to_itself_unless_excluded(store: Store) -> None:
    fill(store, range(5))
    own = make_nest(3).digest
    (nearest,) = store.nearest(make_embedding(3), 1, ENCODER, DEVICE)
    assert nearest.nest.digest == own
    assert nearest.distance == pytest.approx(0, abs=1e-6)
    assert nearest.distance >= 0
    others = store.nearest(make_embedding(3), 4, ENCODER, DEVICE, exclude={own})
    assert {n.nest.digest for n in others} == {make_nest(i).digest for i in (0, 1, 2, 4)}


def test_only_records_of_the_same_fingerprint_are_used(store: Store) -> None:
    fill(store, range(3))
    store.add_records([make_record(0, device_fingerprint=OTHER_DEVICE, speedup=9.0)])
    (elsewhere,) = store.nearest(make_embedding(1), 3, ENCODER, OTHER_DEVICE)
    assert [r.speedup for r in elsewhere.records] == [9.0]
    here = store.nearest(make_embedding(0), 3, ENCODER, DEVICE)
    assert {r.device_fingerprint for n in here for r in n.records} == {DEVICE}
    assert store.nearest(make_embedding(0), 3, ENCODER, "gpu/sm_90") == []
    assert {r.device_fingerprint for r in store.records(make_nest(0).digest)} == {DEVICE, OTHER_DEVICE}


def test_a_nest_with_failures_only_is_not_a_neighbour(store: Store) -> None:
    fill(store, range(2))
    store.add_nest(make_nest(7), make_graph(7), make_embedding(7), ENCODER)
    store.add_records([make_record(7, status="build_error")])
    assert make_nest(7) not in [n.nest for n in store.nearest(make_embedding(7), 3, ENCODER, DEVICE)]
    assert [r.status for r in store.records(make_nest(7).digest)] == ["build_error"]


def test_records_come_best_first_failures_last(store: Store) -> None:
    store.add_nest(make_nest(0), make_graph(0), make_embedding(0), ENCODER)
    speedups = (1.5, 3.0, 0.5)
    store.add_records([make_record(0, status="timeout"), *(make_record(0, speedup=s) for s in speedups)])
    (nearest,) = store.nearest(make_embedding(0), 1, ENCODER, DEVICE)
    assert [r.speedup for r in nearest.records] == [3.0, 1.5, 0.5, None]
    assert nearest.records == store.records(make_nest(0).digest)


def test_records_come_back_as_they_were_added(store: Store, tmp_path: Path) -> None:
    given = [make_record(0), make_record(1, status="wrong_result", baseline_s=None)]
    added = store.add_records(given)
    assert all(len(record.record_id) == 32 for record in added)
    assert [replace(record, record_id="") for record in added] == given
    reopened = Store.open(tmp_path / "store")
    assert [reopened.records(record.nest_digest) for record in added] == [(added[0],), (added[1],)]


def test_entries_are_all_that_is_known(store: Store) -> None:
    fill(store, range(300))
    store.add_records([make_record(7, status="timeout"), make_record(7, speedup=9.0)])
    store.add_nest(make_nest(5), make_graph(5), make_embedding(5, width=4), "encoder-2")
    store.add_nest(make_nest(1000), make_graph(1000), make_embedding(1000, width=4), "encoder-2")
    entries = {entry.nest.digest: entry for entry in store.entries(ENCODER)}
    assert len(entries) == 301
    for number in (5, 7, 299):
        entry = entries[make_nest(number).digest]
        assert entry.nest == make_nest(number)
        assert entry.graph_json == make_graph(number) == store.graph_json(entry.nest.digest)
        assert entry.records == store.records(entry.nest.digest)
        unit = make_embedding(number) / np.linalg.norm(make_embedding(number))
        np.testing.assert_allclose(entry.embedding, unit, rtol=1e-6)
    assert [r.speedup for r in entries[make_nest(7).digest].records] == [9.0, 2.0, None]
    unknown = entries[make_nest(1000).digest]
    assert (unknown.embedding, unknown.records) == (None, ())
    assert [e.nest for e in store.entries("encoder-2") if e.embedding is not None] == [
        make_nest(5),
        make_nest(1000),
    ]


def test_embeddings_belong_to_their_encoder(store: Store) -> None:
    fill(store, range(3))
    assert store.stale("encoder-2") == [make_nest(i).digest for i in range(3)]
    store.add_nest(make_nest(0), make_graph(0), make_embedding(100, width=16), "encoder-2")
    (found,) = store.nearest(make_embedding(5, width=16), 3, "encoder-2", DEVICE)
    assert found.nest == make_nest(0)
    assert len(store.nearest(make_embedding(5), 3, ENCODER, DEVICE)) == 3
    info = store.info()
    assert (info.nests, info.encoders) == (3, {ENCODER: 3, "encoder-2": 1})


def test_adding_a_nest_again_updates_its_embedding(store: Store) -> None:
    fill(store, range(3))
    store.add_nest(make_nest(0), make_graph(0), make_embedding(100), ENCODER)
    (found,) = store.nearest(make_embedding(100), 1, ENCODER, DEVICE)
    assert (found.nest, found.distance) == (make_nest(0), pytest.approx(0, abs=1e-6))
    assert store.info().encoders == {ENCODER: 3}
    assert store.prune() == Changed(nests=1, records=0)
    assert store.nearest(make_embedding(100), 1, ENCODER, DEVICE) == [found]


def test_reembedding_covers_what_the_encoder_has_not_seen(store: Store) -> None:
    fill(store, range(600))
    store.add_nest(make_nest(0), make_graph(0), make_embedding(0, width=4), "encoder-2")
    seen: list[str] = []

    def embed(graphs: list[str]) -> np.ndarray:
        seen.extend(graphs)
        return np.stack([make_embedding(i, width=4) for i in range(len(graphs))])

    assert store.reembed("encoder-2", embed) == 599
    assert sorted(seen) == sorted(make_graph(i) for i in range(1, 600))
    assert store.stale("encoder-2") == []
    assert store.reembed("encoder-2", embed) == 0
    assert len(store.nearest(make_embedding(9, width=4), 600, "encoder-2", DEVICE)) == 600
    assert store.prune(encoder_id="encoder-2") == Changed(nests=600, records=0)
    assert store.info().encoders == {"encoder-2": 600}
    assert store.graph_json(make_nest(17).digest) == make_graph(17)


def test_what_cannot_be_embeddings_is_refused(store: Store) -> None:
    fill(store, range(2))
    nest, graph = make_nest(9), make_graph(9)
    for bad in (np.zeros(8), np.full(8, np.nan)):
        with pytest.raises(InputError, match="finite and not zero"):
            store.add_nest(nest, graph, bad, ENCODER)
        with pytest.raises(InputError, match="finite and not zero"):
            store.nearest(bad, 1, ENCODER, DEVICE)
    length = r"expected embeddings of length 8 from encoder encoder-1, got shape \(4,\)"
    with pytest.raises(InputError, match=length):
        store.add_nest(nest, graph, make_embedding(9, width=4), ENCODER)
    with pytest.raises(InputError, match=length):
        store.nearest(make_embedding(9, width=4), 1, ENCODER, DEVICE)
    opened = Store.open(store.location)
    for query in (make_embedding(9, width=4), np.zeros((1, 8))):
        with pytest.raises(InputError, match=r"expected embeddings of length 8 .*, got shape"):
            opened.nearest(query, 1, ENCODER, DEVICE)
    assert not opened.nearest(make_embedding(9, width=4), 1, "encoder-2", DEVICE)
    opened.add_nest(nest, graph, make_embedding(9), "encoder-2")
    assert opened.nearest(make_embedding(0), 1, ENCODER, DEVICE) and not opened.left_out
    with pytest.raises(InputError, match="for each of 1 nests, got 2 graphs"):
        store.add_nests([nest], [graph, graph], make_embedding(9)[None], ENCODER)
    with pytest.raises(InputError, match="an empty one"):
        store.add_nest(Nest("", "k", "f", "dace"), graph, make_embedding(9), ENCODER)
    assert store.info().encoders == {ENCODER: 2, "encoder-2": 1}


def test_graphs_are_kept(store: Store) -> None:
    fill(store, range(3))
    assert store.graph_json(make_nest(1).digest) == make_graph(1)
    with pytest.raises(InputError, match="expected a nest of the store"):
        store.graph_json("it's not there")


def test_writes_are_seen_by_other_open_stores(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "store")
    fill(store, range(2))
    assert len(other.nearest(make_embedding(0), 5, ENCODER, DEVICE)) == 2
    other.add_records([make_record(1, speedup=4.0)])
    assert len(store.records(make_nest(1).digest)) == 2


def test_merge_adds_what_is_missing_once(store: Store, tmp_path: Path) -> None:
    other = Store.open(tmp_path / "other", create=True)
    fill(store, range(3))
    other.merge(store)
    other.add_nest(make_nest(2), make_graph(2), make_embedding(200), ENCODER)
    fill(other, range(3, 5))
    assert store.merge(other) == Changed(nests=2, records=2)
    assert store.merge(other) == store.merge(store) == Changed(0, 0)
    info = store.info()
    assert (info.nests, info.records) == (5, 5)
    (nearest,) = store.nearest(make_embedding(2), 1, ENCODER, DEVICE)
    assert nearest.distance == pytest.approx(0, abs=1e-6), "this store's own embedding stays"


def test_prune_keeps_the_newest_record_of_the_best_schedules(store: Store) -> None:
    def add(tile: int, speedup: float, day: int, **changes: str) -> str:
        record = make_record(
            0,
            speedup=speedup,
            schedule=make_schedule(tile),
            created=f"2026-01-{day:02}T00:00:00Z",
            **changes,
        )
        return store.add_records([record])[0].record_id

    add(1, 5.0, day=1)
    keep = {add(1, 2.0, day=2), add(2, 3.0, day=1)}
    add(3, 1.5, day=3)
    keep |= {
        add(3, 1.1, day=4, baseline="dace-simplify"),
        add(3, 1.2, day=5, device_fingerprint=OTHER_DEVICE),
    }
    keep |= {store.add_records([make_record(0, status="timeout")])[0].record_id}
    assert store.prune(keep_best=2) == Changed(nests=0, records=2)
    assert {r.record_id for r in store.records(make_nest(0).digest)} == keep
    assert store.prune(keep_best=2) == Changed(0, 0)
    with pytest.raises(InputError, match="at least 1"):
        store.prune(keep_best=0)


def test_prune_drops_old_failures(store: Store) -> None:
    last_week = (datetime.now(UTC) - timedelta(days=7)).isoformat()
    store.add_records(
        [make_record(0, status=status, created=last_week) for status in ("ok", "run_error", "timeout")]
    )
    store.add_records([make_record(0, status="run_error")])
    assert store.prune(failures_older_than=timedelta(days=8)) == Changed(0, 0)
    assert store.prune(failures_older_than=timedelta(days=6)) == Changed(nests=0, records=2)
    assert [r.status for r in store.records(make_nest(0).digest)] == ["ok", "run_error"]


def test_many_small_writes_are_compacted(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnnperf.store.tables.COMPACT_EVERY", 8)
    monkeypatch.setattr("gnnperf.store.tables.KEEP_VERSIONS", timedelta(milliseconds=1))
    opened_before = Store.open(tmp_path / "store")
    for i in range(20):
        store.add_records([make_record(i)])
    assert len(list((tmp_path / "store" / "records.lance" / "data").iterdir())) < 10
    # The version this one had opened is gone.
    opened_before.add_records([make_record(20)])
    assert opened_before.info().records == Store.open(tmp_path / "store").info().records == 21


def test_a_uri_is_passed_through() -> None:
    store = Store.open("memory://test", create=True)
    fill(store, range(2))
    assert len(store.nearest(make_embedding(0), 5, ENCODER, DEVICE)) == 2
    assert (store.location, store.info().size_bytes) == ("memory://test", None)
