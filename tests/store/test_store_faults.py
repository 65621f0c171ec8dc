"""Stores that cannot be read or written: one line that says what to do."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest
from store.samples import DEVICE, ENCODER, fill, make_embedding, make_record, make_schedule

from gnnperf.errors import InputError, StoreError
from gnnperf.store import Store
from gnnperf.store.schema import NESTS, RECORDS


def truncate(*files: Path) -> None:
    assert files
    for file in files:
        os.truncate(file, file.stat().st_size // 2)


def lose_data(folder: Path) -> None:
    shutil.rmtree(folder / "records.lance" / "data")


def truncate_data(folder: Path) -> None:
    truncate(*(folder / "nests.lance" / "data").iterdir())


def truncate_versions(folder: Path) -> None:
    truncate(*(folder / "records.lance" / "_versions").iterdir())


def overwrite_versions(folder: Path) -> None:
    for file in (folder / "nests.lance" / "_versions").iterdir():
        file.write_bytes(b"not a manifest" * 50)


def lose_records(folder: Path) -> None:
    shutil.rmtree(folder / "records.lance")


def lose_nests(folder: Path) -> None:
    shutil.rmtree(folder / "nests.lance")


@pytest.mark.parametrize(
    "damage", [lose_data, truncate_data, truncate_versions, overwrite_versions, lose_records, lose_nests]
)
def test_a_corrupt_store_is_one_clear_line(
    damage: Callable[[Path], None], store: Store, tmp_path: Path
) -> None:
    fill(store, range(3))
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "store", copy)
    damage(copy)
    with pytest.raises(StoreError) as error:
        Store.open(copy)
    line = str(error.value)
    assert line.startswith(f"the schedule store {copy} is corrupt (")
    assert line.endswith("move it away, and restore it from a copy or with `gnnperf store import`")
    assert "\n" not in line
    assert not re.search(r"\.rs\b|/rustc/|\.cargo", line), "no source positions of libraries"


def test_a_schema_mismatch_says_got_and_expected(tmp_path: Path) -> None:
    def open_with(records: pa.Schema) -> str:
        folder = tmp_path / "store"
        shutil.rmtree(folder, ignore_errors=True)
        database = lancedb.connect(folder)
        database.create_table("nests", schema=NESTS)
        database.create_table("records", schema=records)
        with pytest.raises(StoreError) as error:
            Store.open(folder)
        return str(error.value)

    newer = RECORDS.with_metadata({**RECORDS.metadata, b"gnnperf_schema_version": b"999"})
    assert "table `records`" in open_with(newer)
    assert "expected schema version 1, got 999; export it" in open_with(newer)
    assert "expected schema version 1, got none" in open_with(RECORDS.remove_metadata())
    position = RECORDS.names.index("speedup")
    assert "speedup: expected double, got no such column" in open_with(RECORDS.remove(position))
    text = pa.field("speedup", pa.string())
    assert "speedup: expected double, got string" in open_with(RECORDS.set(position, text))


def test_no_store_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="got nothing; name one, or make one with"):
        Store.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(InputError, match="got a folder without one"):
        Store.open(tmp_path)
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "below"):
        for create in (False, True):
            with pytest.raises(InputError, match=rf"expected a folder .*, got the file {file}; name another"):
                Store.open(place, create)


def test_a_server_or_bucket_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANCEDB_API_KEY", raising=False)
    with pytest.raises(StoreError, match=r"^cannot read the schedule store db://nowhere: .*check the URI"):
        Store.open("db://nowhere")  # refused for want of a key, before any network
    with pytest.raises(StoreError, match=r"^cannot read the schedule store ftp://nowhere: .*check the URI"):
        Store.open("ftp://nowhere")


READ_ONLY = """
import ctypes, os, subprocess
from gnnperf.errors import StoreError
if os.geteuid() == 0:  # root without its capabilities is bound by permissions like everyone else
    assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
store = Store.open(path)
assert len(store.nearest(make_embedding(0), 2, ENCODER, DEVICE)) == 2
assert store.graph_json(make_nest(0).digest)
store.export(path.parent / "export.jsonl.zst")
def refused(action):
    try:
        action()
    except StoreError as error:
        print(error)
refused(lambda: store.add_records([make_record(0)]))
refused(lambda: store.add_nest(make_nest(9), make_graph(9), make_embedding(9), ENCODER))
refused(lambda: store.prune(keep_best=1))
refused(lambda: Store.open(path.parent / "closed" / "new", create=True))
"""


def test_a_read_only_store_can_be_read(
    start_child: Callable[[str, Path], subprocess.Popen[str]], store: Store, tmp_path: Path
) -> None:
    fill(store, range(2))
    fill(store, range(2))  # something to prune
    closed = tmp_path / "closed"
    closed.mkdir()
    folders = [closed, *(p for p in [tmp_path / "store", *(tmp_path / "store").rglob("*")] if p.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        output, _ = start_child(READ_ONLY, tmp_path / "store").communicate()
    finally:
        for folder in folders:
            folder.chmod(0o755)
    here = re.escape(str(tmp_path / "store"))
    refusal = f"no permission to write the schedule store {here}; it can be read; make it writable, .*\n"
    elsewhere = "no permission to write the schedule store .*new; .*\n"
    assert re.fullmatch(refusal * 3 + elsewhere, output)
    assert Store.open(tmp_path / "store").info().records == 2 + 2


@contextmanager
def file_limit(nbytes: int) -> Iterator[None]:
    """No file may grow beyond it: what a full disk looks like."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def largest_file(folder: Path) -> int:
    return max(path.stat().st_size for path in folder.rglob("*.lance") if path.is_file())


WRITES: dict[str, Callable[[Store], object]] = {
    "add": lambda store: store.add_records([make_record(i) for i in range(200)]),
    "prune": lambda store: store.prune(keep_best=1),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_finds_no_room_leaves_the_store_as_it_was(
    write: str, store: Store, tmp_path: Path
) -> None:
    """Also where the end of a file is all that is missing, which LanceDB takes for written."""
    for tile in range(40):
        store.add_records([make_record(i, schedule=make_schedule(tile)) for i in range(2)])
    fill(store, range(2))
    written = tmp_path / "written"
    shutil.copytree(tmp_path / "store", written)
    WRITES[write](Store.open(written))
    stays = {*records_of(store)} & {*records_of(Store.open(written))}
    size, refused = largest_file(written), []
    for share in (0.0, 0.2, 0.5, 0.9, 0.95, 0.97, 0.98, 0.99, 0.999):
        place = tmp_path / str(share)
        shutil.copytree(tmp_path / "store", place)
        with file_limit(int(share * size)):
            try:
                WRITES[write](Store.open(place))
            except StoreError as error:
                refused.append(str(error))
        assert stays <= {*records_of(Store.open(place))}, share
    ours = r"(cannot|no space left to) write the schedule store \S+[:;] .*what it holds is safe.*"
    assert refused and all(re.fullmatch(ours, line) for line in refused)


def records_of(store: Store) -> list[str]:
    nearest = store.nearest(make_embedding(0), 5, ENCODER, DEVICE)
    return [record.record_id for neighbour in nearest for record in neighbour.records]
