"""What others write, remove and compact is seen, and only what is new is read."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
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

from gnnperf.store import Neighbour, Store, snapshot
from gnnperf.store.rows import joined
from gnnperf.store.tables import Seen, Table


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each look at a table brought."""
    counts: list[int] = []
    news = Table.news

    def counted(table: Table, seen: Seen, columns: list[str]) -> tuple[Seen, pa.Table, bool]:
        found = news(table, seen, columns)
        counts.append(found[1].num_rows)
        return found

    monkeypatch.setattr(Table, "news", counted)
    return counts


def nearest(store: Store, number: int = 0, device: str = DEVICE) -> list[Neighbour]:
    return store.nearest(make_embedding(number), 30, ENCODER, device)


def test_of_what_another_writes_only_the_new_rows_are_read(
    store: Store, tmp_path: Path, read: list[int]
) -> None:
    fill(store, range(300))
    nearest(store)
    other = Store.open(tmp_path / "store")
    fill(other, range(300, 303))
    other.add_records([make_record(5, speedup=9.0)])
    read.clear()
    assert nearest(store, 301)[0].nest == make_nest(301)
    assert [r.speedup for r in nearest(store, 5)[0].records] == [9.0, 2.0]
    assert read == [3, 4, 0, 0]


def test_compacted_files_are_not_read_again(store: Store, tmp_path: Path, read: list[int]) -> None:
    for first in range(0, 40, 10):
        fill(store, range(first, first + 10))
    before = nearest(store)
    Store.open(tmp_path / "store").prune()
    read.clear()
    assert nearest(store) == before and read == [0, 0]
    fill(Store.open(tmp_path / "store"), range(40, 42))
    read.clear()
    assert nearest(store, 41)[0].nest == make_nest(41) and read == [2, 2]


@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_where_rows_are_gone_everything_is_read(
    which: str, store: Store, tmp_path: Path, read: list[int]
) -> None:
    fill(store, range(20))
    gone = {"first": 0, "middle": 9, "last": 19}[which]
    slower = make_record(gone, speedup=1.0, schedule=make_schedule(8))
    rest = [make_record(n, speedup=3.0, schedule=make_schedule(4)) for n in range(20) if n != gone]
    store.add_records([*rest[:gone], slower, *rest[gone:]])
    assert len(store.records(make_nest(gone).digest)) == 2
    other = Store.open(tmp_path / "store")
    other.prune(keep_best=1)
    other.add_records([make_record(n, speedup=2.5, schedule=make_schedule(2)) for n in range(20)])
    read.clear()
    assert [r.speedup for r in store.records(make_nest(gone).digest)] == [2.5, 2.0]
    assert read == [0, 40]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens_the_answers_are_those_of_a_store_just_opened(
    seed: int, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "_UNSORTED", 7)
    chance = random.Random(seed)
    other = Store.open(tmp_path / "store")
    for step in range(16):
        number, writer = chance.randrange(12), chance.choice([store, other])
        match chance.randrange(6):
            case 0 | 1:
                fill(writer, range(number, number + chance.randint(1, 3)))
            case 2:
                writer.add_nest(make_nest(number), make_graph(number), make_embedding(step + 100), ENCODER)
            case 3:
                device = chance.choice([DEVICE, OTHER_DEVICE])
                status = chance.choice(["ok", "timeout"])
                writer.add_records([make_record(number, status=status, device_fingerprint=device)])
            case 4:
                added = writer.add_records([make_record(number, speedup=float(1 + step))])
                writer.add_records(added)  # a record that repeats
            case _:
                writer.prune(keep_best=chance.choice([None, 1, 2]))
        fresh = Store.open(tmp_path / "store")
        for device in (DEVICE, OTHER_DEVICE):
            assert nearest(store, number, device) == nearest(fresh, number, device)
        digest = make_nest(number).digest
        assert store.records(digest) == fresh.records(digest)
        assert store.info() == fresh.info()
        found = {e.nest.digest: (e.nest, e.records) for e in store.entries(ENCODER)}
        assert found == {e.nest.digest: (e.nest, e.records) for e in fresh.entries(ENCODER)}


def test_a_nest_that_comes_after_its_records_is_found(store: Store) -> None:
    fill(store, range(3))
    store.add_records([make_record(7)])
    assert make_nest(7) not in [n.nest for n in nearest(store, 7)]
    store.add_nest(make_nest(7), make_graph(7), make_embedding(7), ENCODER)
    assert nearest(store, 7)[0].nest == make_nest(7)


def test_rows_that_are_joined_are_in_few_chunks() -> None:
    rows = pa.table({"n": pa.array([], pa.int64())})
    chance, count = np.random.default_rng(0), 0
    for _ in range(300):
        more = int(chance.integers(1, 9))
        rows = joined(rows, pa.table({"n": np.arange(count, count + more)}))
        count += more
    assert rows["n"].to_pylist() == [*range(count)]
    assert rows["n"].num_chunks <= 11
