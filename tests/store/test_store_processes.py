"""Several processes at once, and processes that die."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from store.samples import DEVICE, ENCODER, fill, make_embedding, make_nest, make_record, make_schedule

from gnnperf.errors import StoreError
from gnnperf.store import Store
from gnnperf.store.tables import Table

StartChild = Callable[[str, Path], subprocess.Popen[str]]

WRITER = """
store = Store.open(path, create=True)
first = int(sys.stdin.readline())
for number in range(first, first + 15):
    fill(store, range(number, number + 1))
"""


def test_four_processes_write_while_another_prunes(start_child: StartChild, tmp_path: Path) -> None:
    path = tmp_path / "store"
    writers = [start_child(WRITER, path) for _ in range(4)]
    for i, writer in enumerate(writers):
        assert writer.stdin is not None
        writer.stdin.write(f"{100 * i}\n")  # all of them have started: they create the store at once
        writer.stdin.flush()
    store = Store.open(path, create=True)
    store.add_records([make_record(0, schedule=make_schedule(i)) for i in range(50)])
    kept = 50
    while any(writer.poll() is None for writer in writers):
        kept = max(1, kept - 1)
        store.prune(keep_best=kept)
    assert [writer.wait() for writer in writers] == [0] * 4
    store.prune(keep_best=1)

    store = Store.open(path)
    numbers = [100 * i + j for i in range(4) for j in range(15)]
    info = store.info()
    assert (info.nests, info.records) == (60, 60)
    found = store.nearest(make_embedding(0), 1000, ENCODER, DEVICE)
    assert {n.nest for n in found} == {make_nest(i) for i in numbers}
    assert all(len(n.records) == 1 for n in found)


ENDLESS_WRITER = """
import itertools
store = Store.open(path)
for day in itertools.count():
    batch = [make_record(i, provenance=f'{{"day":{day},"pid":"{sys.argv[1]}"}}') for i in range(200)]
    print(*(record.record_id for record in store.add_records(batch)), flush=True)
"""


def test_a_writer_killed_at_any_moment_loses_only_what_it_was_writing(
    start_child: StartChild, store: Store, tmp_path: Path
) -> None:
    fill(store, range(200))
    committed = {record.record_id for i in range(200) for record in store.records(make_nest(i).digest)}
    for _ in range(3):
        writer = start_child(ENDLESS_WRITER, tmp_path / "store")
        assert writer.stdout is not None
        said = [writer.stdout.readline()]  # it has opened the store
        time.sleep(random.uniform(0.0, 0.3))
        writer.kill()
        said += writer.stdout.readlines()
        writer.wait()
        # The last line may be cut: its rows are stored, since it was being printed.
        whole = [line for line in said if line.endswith("\n")]
        committed |= {identity for line in whole for identity in line.split()}

        survivor = Store.open(tmp_path / "store")
        stored = {r.record_id for i in range(200) for r in survivor.records(make_nest(i).digest)}
        assert committed <= stored
        assert (len(stored) - len(committed)) in (0, 200), "a write is there as a whole or not at all"
        committed = stored
        survivor.add_records([])
        assert len(survivor.nearest(make_embedding(0), 300, ENCODER, DEVICE)) == 200


def test_what_a_killed_writer_leaves_behind_does_no_harm(store: Store, tmp_path: Path) -> None:
    fill(store, range(3))
    before = tmp_path / "before"
    shutil.copytree(tmp_path / "store", before)
    store.add_records([make_record(3)])
    # Killed between the data file and the commit: everything is there but the new version.
    for file in (tmp_path / "store").rglob("*"):
        target = before / file.relative_to(tmp_path / "store")
        if file.is_file() and not target.exists() and file.parent.name != "_versions":
            shutil.copy(file, target)
    # Killed within the data file, and within the temporary file of the commit.
    data = next((before / "records.lance" / "data").iterdir())
    (data.parent / "torn.lance").write_bytes(data.read_bytes()[:100])
    (before / "records.lance" / "_versions" / ".tmpTorn").write_bytes(b"torn")

    survivor = Store.open(before)
    assert survivor.info().records == 3
    survivor.add_records([make_record(4)])
    survivor.prune(keep_best=1)
    assert Store.open(before).info().records == 4


def test_an_interrupted_creation_is_completed(tmp_path: Path) -> None:
    Store.open(tmp_path / "store", create=True)
    shutil.rmtree(tmp_path / "store" / "nests.lance")
    store = Store.open(tmp_path / "store")
    fill(store, range(2))
    assert len(store.nearest(make_embedding(0), 3, ENCODER, DEVICE)) == 2


class Conflicted:
    """A table on a server whose commits meet another's, so many times."""

    version = 7

    def __init__(self, times: int, says: str = "Retryable commit conflict for version 7: preempted") -> None:
        self.times, self.says = times, says
        self.commits = self.refreshed = 0

    def checkout_latest(self) -> None:
        self.refreshed += 1

    def delete(self, predicate: str) -> None:
        if self.times:
            self.times -= 1
            raise RuntimeError(f"lance error: {self.says}, /x/y.rs:1:2")
        self.commits += 1


@pytest.mark.parametrize(
    "says", ["Retryable commit conflict for version 7: preempted", "Too many concurrent writers. Attempted 9"]
)
def test_commit_conflicts_are_tried_again(says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    table = Conflicted(3, says)
    Table(table, "s3://here").delete([1, 2])
    assert (table.commits, table.refreshed) == (1, 4), "each attempt starts from the newest version"
    with pytest.raises(
        StoreError, match=r"^cannot write the schedule store s3://here: Retryable commit conflict"
    ):
        Table(Conflicted(times=1000), "s3://here").delete([1])


@pytest.mark.parametrize(
    ("says", "meanwhile", "left"),
    [("failed to fill whole buffer", 0, 1), ("failed to fill whole buffer", 1, 3), ("Too many files", 0, 2)],
)
def test_only_a_torn_last_version_is_undone(
    says: str, meanwhile: int, left: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """says: LanceDB, of what was just written. meanwhile: records that another process commits after it."""
    store.add_records([make_record(0)])
    other = Store.open(store.location)
    kind = type(store._records._table)
    search = kind.search

    def torn(table: object, *arguments: object) -> object:
        monkeypatch.setattr(kind, "search", search)
        if meanwhile:
            other.add_records([make_record(2)])
        raise RuntimeError(f"lance error: LanceError(IO): {says}")

    monkeypatch.setattr(kind, "search", torn)
    with pytest.raises(StoreError, match="what it holds is safe"):
        store.add_records([make_record(1)])
    assert store.info().records == left
