"""export on a small store, with a client that answers from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.cpp_client import Client, check_sources
from benchmarks.million import made_up
from benchmarks.run import benchmarks
from helpers.synthetic import nest_like

from gnnperf.cli.main import run
from gnnperf.errors import InputError, MeasureError
from gnnperf.export import load_exported, open_flat
from gnnperf.graph import ProgramGraph
from gnnperf.nn import Bundle
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Nest, Record, Store


class StandIn:
    """Takes the words of gnnperf-client and answers from Python."""

    def __init__(self, program: Path) -> None:
        assert program == PROGRAM

    def __call__(self, verb: str, model: Path, *rest: object) -> Any:
        files = [word for word in rest if isinstance(word, Path) and word.suffix == ".json"]
        graphs = [ProgramGraph.from_json(file.read_text()) for file in files]
        if verb == "time":
            return dict.fromkeys(("median_ms", "p95_ms", "cpu_median_ms"), 2.0)
        vectors = load_exported(model).embed(graphs)
        if verb == "embed":
            return {"graphs": [{"embedding": vector.tolist()} for vector in vectors]}
        assert isinstance(rest[0], Path)
        store = open_flat(rest[0])
        device = store.header["fingerprints"][0]
        found = [[store.nest(row) for row, _ in store.nearest(vector, 10, device)] for vector in vectors]
        return {"graphs": [{"neighbours": nests, "search_ms": 3.0} for nests in found]}

    def seconds(self, *words: object) -> float:
        return 0.5


PROGRAM = Path("/bin/true")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("benchmarks.export.Client", StandIn)
    return PROGRAM


@pytest.fixture
def with_store(checkpoint: Path, bundle: Bundle, tmp_path: Path) -> Path:
    """A checkpoint of twelve nests."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    for name in ("weights.pt", "metadata.json"):
        (folder / name).write_bytes((checkpoint / name).read_bytes())
    store = Store.open(folder / "store", create=True)
    graphs = [nest_like([4 + i, 7, 3]) for i in range(12)]
    nests = [Nest(g.digest, f"k{i}", "f", "dace") for i, g in enumerate(graphs)]
    store.add_nests(nests, [g.to_json() for g in graphs], bundle.embed(graphs), bundle.encoder_id)
    record = Record(
        nest_digest=graphs[0].digest, kernel="k0", family="f", frontend="dace",
        device_fingerprint="cpu/made-up", device_name="cpu", baseline="b",
        schedule=Recipe().to_json(), schedule_kind=Recipe.kind, status="ok",
        baseline_s=2.0, runtime_s=1.0, interval_lo_s=0.9, interval_hi_s=1.1, speedup=2.0,
    )  # fmt: skip
    store.add_records([record])
    return folder


def test_the_document_has_the_figures(
    stand_in: Path, with_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--checkpoint", str(with_store), "--client", str(stand_in), "--nests", "1000", "--repeat", "20"]
    assert run(["export", *words, "--no-aoti", "--json"], benchmarks) == 0
    document = json.loads(capsys.readouterr().out)
    figures = document["figures"]
    assert set(figures) == {
        "cpp_embed_ms_median", "batch256_speedup", "artefact_mb", "start_to_answer_s_median",
        "parity_max_abs", "search_1m_ms_p50", "search_1m_recall10",
    }  # fmt: skip
    rows = {row["figure"]: row["value"] for row in document["rows"]}
    assert figures["cpp_embed_ms_median"] == 2.0
    assert figures["batch256_speedup"] == pytest.approx(256 * rows["eager_embed_ms_median"] / 2.0)
    assert figures["start_to_answer_s_median"] == 0.5
    # Nests that are as like as these are told apart by the last bit of a distance.
    assert figures["parity_max_abs"] < 1e-5 and figures["search_1m_recall10"] > 0.9
    assert figures["search_1m_ms_p50"] >= 3.0
    assert rows["one by one, Python: recall@10"] > 0.9 and rows["Store, Python: recall@10"] > 0.9
    assert rows["Store, Python: ms, median"] > 0 and rows["nodes"] == 6
    assert document["settings"]["nests_searched"] == 1000


def test_a_checkpoint_without_a_store(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--checkpoint", str(checkpoint)], benchmarks) == 2
    assert "expected a checkpoint with a store" in capsys.readouterr().err


def test_a_client_that_fails(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"the C\+\+ client failed: 1"):
        Client(Path("/bin/false"))("embed")


def test_an_installed_gnnperf_has_no_sources_of_the_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.cpp_client.SOURCES", tmp_path / "none")
    with pytest.raises(InputError, match="name a built one: --client"):
        check_sources()


def test_made_up_nests_are_near_known_ones() -> None:
    chance = np.random.default_rng(0)
    known = chance.standard_normal((50, 16)).astype(np.float32)
    known /= np.linalg.norm(known, axis=1, keepdims=True)
    vectors = made_up(known, 500, chance)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    anywhere = chance.standard_normal((500, 16))
    anywhere /= np.linalg.norm(anywhere, axis=1, keepdims=True)
    assert (vectors @ known.T).max(1).mean() > (anywhere @ known.T).max(1).mean()
