"""The C++ client gives the answers that Python gives."""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN
from helpers.made_up_model import CPU
from helpers.random_graphs import random_graph

from gnnperf.devices import load_device
from gnnperf.export import open_flat, write_flat
from gnnperf.export.torchscript import save_torchscript
from gnnperf.frontends.operators import parse_operator
from gnnperf.graph import ProgramGraph
from gnnperf.nn import Bundle, load_checkpoint
from gnnperf.nn.runtime import RuntimeHead
from gnnperf.retrieval.prediction import predict_kernel
from gnnperf.store import Store

Client = Callable[..., Any]
RUNTIME = Path(__file__).parents[2] / "checkpoints" / "gpu-runtime"
GRAPHS = sorted((GOLDEN / "graphs").glob("*.json"))


def vectors(client: Client, exported: Path, paths: Sequence[Path]) -> np.ndarray:
    document = client("embed", exported / "model.pt", *paths)
    return np.array([graph["embedding"] for graph in document["graphs"]])


def test_golden_graphs_embed_alike(client: Client, exported: Path, made_up: Bundle) -> None:
    expected = made_up.embed([ProgramGraph.from_json(path.read_text()) for path in GRAPHS])
    assert np.abs(vectors(client, exported, GRAPHS) - expected).max() < 1e-5
    assert np.abs(vectors(client, exported, GRAPHS[:1]) - expected[:1]).max() < 1e-5


def test_random_graphs_embed_alike(client: Client, exported: Path, made_up: Bundle, tmp_path: Path) -> None:
    chance = random.Random(0)
    graphs = [random_graph(chance) for _ in range(100)]
    paths = [tmp_path / f"{i}.json" for i in range(len(graphs))]
    for path, graph in zip(paths, graphs, strict=True):
        path.write_text(graph.to_json())
    assert np.abs(vectors(client, exported, paths) - made_up.embed(graphs)).max() < 1e-5


def test_neighbours_and_schedules_are_those_of_the_store(
    client: Client, exported: Path, made_up_folder: Path, made_up: Bundle
) -> None:
    store = Store.open(made_up_folder / "store")
    document = client("retrieve", exported / "model.pt", exported / "store.gnnstore", *GRAPHS, "-k", 4)
    assert document["device"] == CPU and document["encoder_id"] == made_up.encoder_id
    for path, found in zip(GRAPHS, document["graphs"], strict=True):
        query = made_up.embed([ProgramGraph.from_json(path.read_text())])[0]
        expected = store.nearest(query, 4, made_up.encoder_id, CPU)
        distances = [neighbour["distance"] for neighbour in found["neighbours"]]
        np.testing.assert_allclose(distances, [n.distance for n in expected], atol=1e-5)
        assert {n["digest"] for n in found["neighbours"]} == {n.nest.digest for n in expected}
        by_digest = {n.nest.digest: n for n in expected}
        for neighbour in found["neighbours"]:
            records = by_digest[neighbour["digest"]].records
            assert neighbour["kernel"] == by_digest[neighbour["digest"]].nest.kernel
            assert [s["speedup"] for s in neighbour["schedules"]] == [r.speedup for r in records[:3]]
            assert all(s["schedule"]["kind"] == "recipe" for s in neighbour["schedules"])


@pytest.mark.parametrize(
    "operator",
    [
        "linear:M=512,N=1024,K=768", "bmm:B=16,M=64,N=128,K=256", "softmax:B=4096,H=1000",
        "layernorm:B=333,H=4096", "relu:B=65536,H=64", "reduction:B=100,H=5000",
    ],
)  # fmt: skip
def test_runtimes_are_those_of_predict(client: Client, exported: Path, tmp_path: Path, operator: str) -> None:
    found = parse_operator(operator)
    graph = tmp_path / "graph.json"
    graph.write_text(found.graph().to_json())
    gpus = ("l4", "NVIDIA H200", "mi100", "k20")
    words = [word for gpu in gpus for word in ("--gpu", gpu)]
    model = exported / "runtime" / "model.pt"
    document = client("predict", model, graph, *words, "--family", found.family)
    for row in document["predictions"]:
        expected = predict_kernel(
            load_checkpoint(RUNTIME, RuntimeHead), [found.workload()], load_device(row["gpu"])
        )
        assert (row["objection"] is None) == (expected.objection is None)
        if expected.intervals_s is None:
            continue
        assert row["runtime_ms"] == pytest.approx(1e3 * (expected.runtime_s or 0), rel=1e-5)
        assert row["roofline_ms"] == pytest.approx(1e3 * (expected.roofline_s or 0), rel=1e-5)
        for level, bounds in expected.intervals_s.items():
            assert row["intervals_ms"][f"{level:.0%}"] == pytest.approx([1e3 * b for b in bounds], rel=1e-5)
        assert len(row["remarks"]) == len(expected.remarks)


def test_runtimes_on_a_gpu_that_is_described(client: Client, exported: Path, tmp_path: Path) -> None:
    model, graph = exported / "runtime" / "model.pt", tmp_path / "graph.json"
    graph.write_text(parse_operator("relu:B=65536,H=1024").graph().to_json())
    columns = client("info", model)["devices"]["l4"]["columns"]
    (tmp_path / "twice.json").write_text(
        json.dumps({"columns": {**columns, "bandwidth": 2 * columns["bandwidth"]}})
    )
    rows = client("predict", model, graph, "--gpu", "l4", "--gpu", tmp_path / "twice.json")["predictions"]
    assert rows[1]["runtime_ms"] < rows[0]["runtime_ms"]


def test_the_model_says_what_it_is(client: Client, exported: Path, made_up: Bundle) -> None:
    about = client("info", exported / "model.pt")
    assert about["encoder_id"] == made_up.encoder_id
    assert about["functions"]["embed"]["inputs"][0]["name"] == "node_kind"


def test_an_embedding_is_timed(client: Client, exported: Path) -> None:
    times = client("time", exported / "model.pt", GRAPHS[0], "--repeat", 5, "--batch", 3)
    assert times["median_ms"] > 0 and times["loaded_ms"] < times["first_ms"]
    assert times["batch"] == 3 and times["repeat"] == 5


def test_every_nest_of_the_store_is_its_own_neighbour(
    client: Client, exported: Path, made_up_folder: Path, tmp_path: Path
) -> None:
    """The embedding in the store is the embedding that C++ computes."""
    store = Store.open(made_up_folder / "store")
    flat = open_flat(exported / "store.gnnstore")
    digests = [flat.nest(row)["digest"] for row in range(0, flat.header["nests"], 30)]
    paths = [tmp_path / f"{digest}.json" for digest in digests]
    for path, digest in zip(paths, digests, strict=True):
        path.write_text(store.graph_json(digest))
    document = client("retrieve", exported / "model.pt", exported / "store.gnnstore", *paths, "-k", 1)
    for found in document["graphs"]:
        assert found["neighbours"][0]["distance"] < 1e-5


def test_large_stores_are_searched_by_lists_as_in_python(
    client: Client, exported: Path, made_up: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gnnperf.export.flat_store.WORTH_IT", 1000)
    known = open_flat(exported / "store.gnnstore").vectors
    chance = np.random.default_rng(0)
    vectors = known[chance.integers(len(known), size=2000)] + 0.05 * chance.standard_normal((2000, 64))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    lines = [json.dumps({"digest": str(i), "records": []}).encode() + b"\n" for i in range(2000)]
    path = tmp_path / "large.gnnstore"
    write_flat(path, made_up.encoder_id, vectors, {CPU: chance.random(2000) < 0.8}, lines, 0)
    flat = open_flat(path)
    assert flat.clusters is not None and flat.clusters.probes < len(flat.clusters.centroids)
    document = client("retrieve", exported / "model.pt", path, *GRAPHS, "-k", 10)
    for graph, found in zip(GRAPHS, document["graphs"], strict=True):
        query = made_up.embed([ProgramGraph.from_json(graph.read_text())])[0]
        expected = flat.nearest(query, 10, CPU)
        distances = [neighbour["distance"] for neighbour in found["neighbours"]]
        np.testing.assert_allclose(distances, [d for _, d in expected], atol=1e-5)


def test_mismatches_are_refused(refusal: Callable[..., str], exported: Path, tmp_path: Path) -> None:
    model, graph = exported / "model.pt", GRAPHS[0]
    assert "expected a verb out of embed" in refusal("guess", model)
    assert "unknown option '--fast'" in refusal("embed", model, graph, "--fast")
    assert "-k: expected a number from 1" in refusal("retrieve", model, "s", graph, "-k", "0")
    assert "expected MODEL GRAPH..., got 1" in refusal("embed", model)
    assert "expected an archive written by" in refusal("embed", graph, graph)
    assert "none.pt; name a file written by" in refusal("embed", tmp_path / "none.pt", graph)
    assert "cannot read" in refusal("embed", model, tmp_path / "none.json")
    assert "cannot read" in refusal("retrieve", model, tmp_path, graph)
    assert "expected a store written by" in refusal("retrieve", model, model, graph)
    device = refusal("retrieve", model, exported / "store.gnnstore", graph, "--device", "cpu/arm")
    assert f"expected --device out of {CPU}, got cpu/arm" in device
    assert "embeds no graphs" in refusal("embed", exported / "runtime" / "model.pt", graph)
    assert "predicts no runtimes" in refusal("predict", model, graph, "--gpu", "l4")
    runtime = exported / "runtime" / "model.pt"
    assert "expected at least one --gpu" in refusal("predict", runtime, graph)
    assert "expected a GPU of the model's catalog" in refusal("predict", runtime, graph, "--gpu", "abacus")


def test_metadata_is_checked_at_load(refusal: Callable[..., str], tmp_path: Path) -> None:
    good = {"format": "gnnperf-model", "format_version": 1, "backend": "torchscript", "functions": {}}
    for change, message in (
        ({"format": "onnx"}, "format is \"onnx\", expected \"gnnperf-model\""),
        ({"format_version": 2}, "format_version is 2, expected 1"),
        ({"backend": "aoti"}, "backend is \"aoti\", expected \"torchscript\""),
        ({}, "damaged metadata"),
        ({"graph": {}}, "field registry is damaged"),
    ):  # fmt: skip
        save_torchscript(tmp_path / "m.pt", (), json.dumps({**good, **change}))
        assert message in refusal("info", tmp_path / "m.pt")


def test_a_store_of_another_encoder_is_refused(
    refusal: Callable[..., str], exported: Path, made_up: Bundle, tmp_path: Path
) -> None:
    data = (exported / "store.gnnstore").read_bytes()
    other = tmp_path / "other.gnnstore"
    encoder_id = made_up.encoder_id
    unlike = encoder_id[::-1]
    changed = bytearray(data.replace(encoder_id.encode(), unlike.encode(), 1))
    header = changed[20 : 20 + int.from_bytes(changed[12:16], "little")]
    changed[16:20] = zlib.crc32(header).to_bytes(4, "little")
    other.write_bytes(changed)
    message = refusal("retrieve", exported / "model.pt", other, GRAPHS[0])
    assert f"encoder_id is {unlike}" in message and f"expected {encoder_id}" in message


@pytest.mark.parametrize("name", ["model.pt", "store.gnnstore"])
def test_a_flipped_bit_is_told_with_both_checksums(
    refusal: Callable[..., str], exported: Path, tmp_path: Path, name: str
) -> None:
    for place in (0.2, 0.5, 0.8):  # in weights, in vectors, in records
        copies = {part: tmp_path / part for part in ("model.pt", "store.gnnstore")}
        for part, copy in copies.items():
            data = bytearray((exported / part).read_bytes())
            data[int(place * len(data))] ^= part == name
            copy.write_bytes(data)
        line = refusal("retrieve", *copies.values(), GRAPHS[0])
        assert name in line and re.search(r"checksum is [0-9a-f]{8}, expected [0-9a-f]{8}; export", line)
