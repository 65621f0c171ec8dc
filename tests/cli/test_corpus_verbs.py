"""Options that a verb for corpora does not take are refused; a corpus is put into a store once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.synthetic import measurement, nest, nest_like, write_corpus

from gnnperf.cli.main import run

WORKLOADS = "name: w\nkind: workloads\nworkloads:\n  - {kind: softmax, m: 4, n: 4}\n"
NESTS = "name: n\nentries: []\n"
PACK = "name: p\nkind: pack\nworkloads:\n  - {kind: softmax, m: 4, n: 4}\n"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (WORKLOADS, ["--ray", "auto"], "--ray is for nests"),
        (NESTS, ["--schedules", "4"], "--schedules is for TVM workloads"),
        (NESTS, ["--ray", "local", "--processes", "2"], "--processes is for this machine alone"),
        (PACK, [], "use: gnnperf measure pack c.yaml"),
        (WORKLOADS, ["--only", "conv"], "no workload or kind 'conv'; there are softmax"),
    ],
)
def test_what_a_kind_does_not_take_is_refused(
    text: str, options: list[str], said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(text)
    assert run(["collect", "c.yaml", *options]) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]


def test_only_packs_are_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text(NESTS)
    assert run(["measure", "pack", str(tmp_path / "c.yaml"), "-o", str(tmp_path / "pack")]) == 2
    assert "collect it with: gnnperf collect" in capsys.readouterr().err
    assert not (tmp_path / "pack").exists()


def test_a_corpus_fills_a_store_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = nest_like([64, 32])
    records = [measurement(graph.digest, "a", 0.5), measurement(graph.digest, "b", None)]
    corpus = write_corpus(tmp_path / "corpus", [nest(graph, "map")], records)
    command = ["store", "import", str(tmp_path / "store"), "--corpus", str(corpus), "--json"]
    for added in ((1, 2), (0, 0)):
        assert run(command) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["nests"], found["records"]) == added


def test_a_store_is_filled_from_one_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "store")
    assert run(["store", "import", store]) == 2
    assert run(["store", "import", store, "a.jsonl.zst", "--corpus", "b"]) == 2
    assert run(["store", "import", store, "a.jsonl.zst", "--best", "3"]) == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert "--corpus FOLDER, got none" in first and "got several" in second
    assert third.startswith("gnnperf: --best")
    assert not (tmp_path / "store").exists()
