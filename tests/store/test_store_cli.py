"""`gnnperf store`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from store.samples import DEVICE, ENCODER, fill, make_record, make_schedule

from gnnperf.cli.main import run
from gnnperf.store import Store


class Gnnperf:
    """`gnnperf store ...` in this process: what it printed, and the exit code."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *args: object) -> tuple[int, str, str]:
        code = run(["store", *map(str, args)])
        return code, *self._capfd.readouterr()

    def json(self, *args: object) -> Any:
        code, out, err = self(*args, "--json")
        assert (code, err) == (0, "")
        assert len(out.splitlines()) == 1
        return json.loads(out)


@pytest.fixture
def gnnperf(capfd: pytest.CaptureFixture[str]) -> Gnnperf:
    return Gnnperf(capfd)


@pytest.fixture
def location(store: Store) -> str:
    fill(store, range(4))
    store.add_records(
        [make_record(0, speedup=3.0, schedule=make_schedule(8)), make_record(1, status="timeout")]
    )
    return store.location


def test_info(gnnperf: Gnnperf, location: str) -> None:
    document = gnnperf.json("info", location)
    assert document["location"] == location
    assert (document["schema_version"], document["nests"], document["records"]) == (1, 4, 6)
    assert document["encoders"] == {ENCODER: 4}
    assert document["devices"] == {DEVICE: 6}
    assert document["statuses"] == {"ok": 5, "timeout": 1}
    assert document["size_bytes"] > 1000
    code, out, err = gnnperf("info", location)
    assert (code, err) == (0, "")
    assert f"{ENCODER}: 4" in out


def test_export_import_merge_prune(gnnperf: Gnnperf, location: str, tmp_path: Path) -> None:
    file, copy, third = tmp_path / "file.jsonl.zst", tmp_path / "copy", tmp_path / "third"
    assert gnnperf.json("export", location, file) == {
        "location": str(file), "done": "wrote", "nests": 4, "records": 6,
    }  # fmt: skip
    assert gnnperf("import", copy, file) == (0, f"{copy}: added 4 nests and 6 records\n", "")
    assert gnnperf.json("merge", third, location, copy)["records"] == 6
    assert gnnperf.json("prune", third)["records"] == 0
    assert gnnperf.json("prune", third, "--keep-best", 1)["records"] == 1
    assert gnnperf.json("prune", third, "--failures-older-than", 0)["records"] == 1
    assert gnnperf.json("prune", third, "--encoder", "encoder-2")["nests"] == 0
    assert gnnperf.json("info", third)["records"] == 4


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["info", "{tmp}/none"], 2, "expected a schedule store at {tmp}/none, got nothing"),
        (["export", "{tmp}/none", "{tmp}/file"], 2, "expected a schedule store at {tmp}/none, got nothing"),
        (["export", "{tmp}/store", "{tmp}/none/file"], 2, "cannot write {tmp}/none/file"),
        (["import", "{tmp}/new", "{tmp}/none"], 2, "expected a file made by `gnnperf store export`"),
        (["merge", "{tmp}/new", "{tmp}/none"], 2, "expected a schedule store at {tmp}/none, got nothing"),
        (["merge", "{tmp}/new"], 2, "Missing argument 'OTHER...'"),
        (["prune", "{tmp}/store", "--keep-best", "0"], 2, "Invalid value for '--keep-best'"),
        (
            ["prune", "{tmp}/store", "--failures-older-than", "nan"],
            2,
            "Invalid value for '--failures-older-than'",
        ),
        (["prune", "{tmp}/store", "--failures-older-than", "1000000"], 2, "Invalid value for '--failures-ol"),
        (["info", "{tmp}/torn"], 1, "the schedule store {tmp}/torn is corrupt"),
    ],
)
def test_mistakes_are_one_line(
    args: list[str], code: int, message: str, gnnperf: Gnnperf, location: str, tmp_path: Path
) -> None:
    torn = tmp_path / "torn"
    (torn / "nests.lance").mkdir(parents=True)
    (torn / "records.lance").mkdir()
    got, out, err = gnnperf(*(arg.format(tmp=tmp_path) for arg in args))
    assert (got, out) == (code, "")
    assert err.startswith(f"gnnperf: {message.format(tmp=tmp_path)}")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "new").exists()
