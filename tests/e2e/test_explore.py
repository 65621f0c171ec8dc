"""`gnnperf explore`: the whole command, and what its user may get wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import EXAMPLES
from retrieval.records import make_nest, make_record, recipe

from gnnperf.cli.main import run
from gnnperf.nests import nest_graph
from gnnperf.store import Store

NAMES = ("gemm", "softmax", "spmm", "gather")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Four nests, one of them measured, embedded by an encoder that nobody has any more."""
    made = Store.open(tmp_path / "store", create=True)
    for name in NAMES:
        graph = nest_graph(EXAMPLES[name]())
        nest = replace(make_nest(name), digest=graph.digest)
        made.add_nest(nest, graph.to_json(), np.ones(4, np.float32), "an earlier encoder")
        if name == "gemm":
            made.add_records([replace(make_record(name, recipe(1), 2.0), nest_digest=graph.digest)])
    return tmp_path / "store"


def the_line(capfd: pytest.CaptureFixture[str]) -> str:
    captured = capfd.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def test_the_page_is_written_and_told(
    store: Path, checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = store.parent / "map.html"
    command = ["explore", "--checkpoint", str(checkpoint), "--store", str(store), "-o", str(page)]
    assert run([*command, "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    html = page.read_text(encoding="utf-8")
    assert (document["path"], document["bytes"]) == (str(page), page.stat().st_size)
    assert (document["nests"], document["families"], document["measurements"]) == (4, 1, 1)
    assert document["devices"] == ["a CPU (cpu/x86_64/avx512)"]
    assert all(name in html for name in NAMES)
    assert [file.name for file in store.parent.iterdir() if file.is_file()] == ["map.html"]

    assert run(command) == 0
    assert f"{page}: 4 nests of 1 families" in " ".join(capfd.readouterr().out.split())
    assert page.read_text(encoding="utf-8") == html, "the same store, the same map"


def test_several_stores_make_one_map(
    store: Path, checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = Store.open(store.parent / "other", create=True)
    other.merge(Store.open(store))
    graph = nest_graph(EXAMPLES["transpose"]())
    nest = replace(make_nest("transpose"), digest=graph.digest, family="another")
    other.add_nest(nest, graph.to_json(), np.ones(4, np.float32), "an earlier encoder")
    page = store.parent / "map.html"
    both = ["--store", str(store), "--store", other.location]
    assert run(["explore", "--checkpoint", str(checkpoint), *both, "-o", str(page), "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["nests"], document["families"], document["measurements"]) == (5, 2, 1)


def test_without_a_store_it_is_that_of_the_checkpoint(
    store: Path, checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    released = tmp_path / "released"
    released.mkdir()
    for file in checkpoint.iterdir():
        (released / file.name).symlink_to(file)
    (released / "store").symlink_to(store)
    page = tmp_path / "map.html"
    assert run(["explore", "--checkpoint", str(released), "-o", str(page), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["stores"] == [str(released / "store")]


def test_no_store_and_an_empty_one(
    tmp_path: Path, checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["explore", "--checkpoint", str(checkpoint), "-o", str(tmp_path / "map.html"), "--store"]
    assert run([*command, str(tmp_path / "nowhere")]) == 2
    assert "expected a schedule store at" in the_line(capfd)
    Store.open(tmp_path / "empty", create=True)
    assert run([*command, str(tmp_path / "empty")]) == 2
    assert f"expected a schedule store with nests, got none in {tmp_path / 'empty'}" in the_line(capfd)
    assert not (tmp_path / "map.html").exists()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "expected a file to write, got the folder"),
        ("no/such/folder/map.html", "No such file or directory"),
        ("file/map.html", "Not a directory"),
    ],
)
def test_an_output_that_cannot_be_written(
    output: str, message: str, store: Path, checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (store.parent / "file").write_text("")
    where = str(store.parent / output)
    assert run(["explore", "--checkpoint", str(checkpoint), "--store", str(store), "-o", where]) == 2
    line = the_line(capfd)
    assert line.startswith("gnnperf: --output: expected a file")
    assert message in line
