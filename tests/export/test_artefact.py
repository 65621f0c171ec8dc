"""Exported models compute what the checkpoint computes, at any size, and say what they are made for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import GOLDEN
from helpers.random_graphs import program_graphs
from helpers.synthetic import lonely, nest_like
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnperf.errors import InputError
from gnnperf.export import ExportedModel, embed_tensors, export_checkpoint, load_exported
from gnnperf.export.exporting import read_checkpoint
from gnnperf.export.metadata import build_metadata
from gnnperf.export.torchscript import save_torchscript
from gnnperf.graph import EDGE_FEATURES, NODE_FEATURES, ProgramGraph
from gnnperf.nn import Bundle
from gnnperf.schedules.recipes import DEFAULTS, effects, recipe_features

TOLERANCE = 1e-5
GRAPHS = [ProgramGraph.from_json(path.read_text()) for path in sorted((GOLDEN / "graphs").glob("*.json"))]


def apart(model: ExportedModel, bundle: Bundle, graphs: Sequence[ProgramGraph]) -> float:
    return float(np.abs(model.embed(graphs) - bundle.embed(graphs)).max())


def test_golden_graphs_embed_alike_one_by_one_and_in_a_batch(model: ExportedModel, released: Bundle) -> None:
    assert len(GRAPHS) > 10
    assert apart(model, released, GRAPHS) < TOLERANCE
    for graph in GRAPHS:
        assert apart(model, released, [graph]) < TOLERANCE


@given(st.lists(program_graphs(), min_size=1, max_size=4))
@settings(max_examples=40)
def test_random_graphs_embed_alike(
    model: ExportedModel, released: Bundle, graphs: list[ProgramGraph]
) -> None:
    assert apart(model, released, graphs) < TOLERANCE


@given(program_graphs())
@settings(max_examples=20)
def test_profiles_are_read_alike(model: ExportedModel, released: Bundle, graph: ProgramGraph) -> None:
    expected = released.embed([graph], with_profiles=True)
    assert np.abs(model.embed([graph], with_profiles=True) - expected).max() < TOLERANCE


def test_one_node_and_no_edge(model: ExportedModel, released: Bundle) -> None:
    assert apart(model, released, [lonely()]) < TOLERANCE
    assert apart(model, released, [lonely(), nest_like([3, 4]), lonely("exp")]) < TOLERANCE


def test_a_hundred_thousand_nodes(model: ExportedModel, released: Bundle) -> None:
    n, e = 100_000, 50_000
    chance = torch.Generator().manual_seed(0)
    inputs = list(embed_tensors([lonely()]))
    inputs[0] = torch.randint(0, 5, (n,), generator=chance)
    inputs[1] = torch.randn(n, NODE_FEATURES, generator=chance)
    inputs[2] = torch.randint(0, n, (2, e), generator=chance)
    inputs[3] = torch.randint(0, 12, (e,), generator=chance)
    inputs[4] = torch.randn(e, EDGE_FEATURES, generator=chance)
    inputs[6], inputs[7] = torch.tensor([0, n]), torch.zeros(n, dtype=torch.int64)
    with torch.inference_mode():
        expected = released.encoder(*inputs)
    assert (model.call("embed", *inputs)[0] - expected).abs().max() < TOLERANCE


def test_the_head_scores_alike(model: ExportedModel, released: Bundle) -> None:
    graphs, recipes = GRAPHS[:3], DEFAULTS[:4]
    states = model.call("embed", *embed_tensors(graphs))[1]
    names = released.schedule_fields
    schedules = torch.from_numpy(np.stack([recipe_features(recipe, names) for recipe in recipes]))
    pairs = torch.cartesian_prod(torch.arange(len(graphs)), torch.arange(len(recipes)))
    found = torch.from_numpy(np.concatenate([effects(graph, recipes) for graph in graphs]))
    scores = model.call("score", states, schedules, found, pairs[:, 0], pairs[:, 1])[0]
    expected = released.score(graphs, recipes)
    assert np.abs(scores.view(len(graphs), len(recipes)).numpy() - expected).max() < TOLERANCE


def test_tensors_that_do_not_fit_are_refused(model: ExportedModel) -> None:
    inputs = list(embed_tensors([lonely()]))
    with pytest.raises(InputError, match=r"expected a function out of embed, score, got 'predict'"):
        model.call("predict", *inputs)
    with pytest.raises(InputError, match=r"embed: expected 9 tensors \(node_kind, .*\), got 8"):
        model.call("embed", *inputs[:-1])
    wide = torch.zeros(1, NODE_FEATURES + 1)
    expected = (
        rf"node_features: expected float32\[n, {NODE_FEATURES}\].*, got float32\[1, {NODE_FEATURES + 1}\]"
    )
    with pytest.raises(InputError, match=expected):
        model.call("embed", inputs[0], wide, *inputs[2:])
    with pytest.raises(InputError, match=r"batch: expected int64\[n\] with n=1, .*, got int64\[2\]"):
        model.call("embed", *inputs[:7], torch.zeros(2, dtype=torch.int64), inputs[8])
    with pytest.raises(InputError, match=r"node_kind: expected int64\[n\].*, got float32\[1\]"):
        model.call("embed", torch.zeros(1), *inputs[1:])


def test_the_metadata_says_what_the_model_is(model: ExportedModel, released: Bundle) -> None:
    about = model.metadata
    assert about["kind"] == "retrieval"
    assert about["encoder_id"] == released.encoder_id
    assert about["embedding_width"] == model.embed([lonely()]).shape[1]
    assert about["corpus"]["digest"] == released.provenance.corpus["digest"]
    assert about["device"]["fingerprint"] == "cpu/x86_64/avx512"
    assert about["licence"] and about["normalisation"]
    extent = next(f for f in about["graph"]["fields"]["node"] if f["name"] == "extent")
    assert extent["unit"] == "iterations" and extent["width"] == 1
    shapes = {spec["name"]: spec["shape"] for spec in about["functions"]["embed"]["inputs"]}
    assert shapes["node_features"] == ["n", NODE_FEATURES] and shapes["ptr"] == ["b+1"]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), "other", "format is other, expected gnnperf-model"),
        (("format_version",), 0, "format_version is 0, expected 1"),
        (("backend",), "aoti", "backend is aoti, expected torchscript"),
        (("graph", "schema_digest"), "abc", "schema_digest is abc, expected "),
        (("graph", "schema_version"), 9, "schema_version is 9, expected 1"),
        (
            ("functions", "embed", "inputs", 1, "shape"),
            ["n", 3],
            r"inputs of embed is .*'n', 3.*, expected .*",
        ),
        (("functions", "embed", "inputs", 1, "unit"), "ln", "in 'ln'.*, expected .* in 'log2'"),
        (("functions", "embed", "inputs"), [], "inputs of embed is .*0 inputs.*, expected .*9 inputs"),
        (("functions",), {}, "expected functions in the metadata"),
    ],
)
def test_a_mismatch_says_what_was_got_and_expected(
    bundle: Bundle,
    checkpoint: Path,
    tmp_path: Path,
    place: tuple[str | int, ...],
    value: object,
    message: str,
) -> None:
    found = read_checkpoint(checkpoint)
    document = json.loads(
        json.dumps(build_metadata("retrieval", "torchscript", found.functions, found.about))
    )
    at = document
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    save_torchscript(tmp_path / "m.pt", found.functions, json.dumps(document))
    with pytest.raises(InputError, match=message):
        load_exported(tmp_path / "m.pt")


def test_metadata_that_promises_another_result_is_found_out(
    checkpoint: Path, tmp_path: Path
) -> None:  # fmt: skip
    found = read_checkpoint(checkpoint)
    document = json.loads(
        json.dumps(build_metadata("retrieval", "torchscript", found.functions, found.about))
    )
    document["functions"]["embed"]["outputs"][0]["shape"] = ["b", 7]
    save_torchscript(tmp_path / "m.pt", found.functions, json.dumps(document))
    with pytest.raises(InputError, match=r"result of embed: embedding: expected float32\[b, 7\].*, got .*64"):
        load_exported(tmp_path / "m.pt").embed([lonely()])


@pytest.mark.parametrize("content", [None, b"", b"no zip", "torn"])
def test_files_that_are_no_artefact(folder: Path, tmp_path: Path, content: bytes | str | None) -> None:
    path = tmp_path / "m.pt"
    if content == "torn":
        path.write_bytes((folder / "model.pt").read_bytes()[:50_000])
    elif isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot read .*m\.pt: .*gnnperf export"):
        load_exported(path)


def test_torchscript_of_somebody_else(tmp_path: Path) -> None:
    save_torchscript(tmp_path / "m.pt", (), "")
    with pytest.raises(InputError, match="expected metadata of gnnperf inside"):
        load_exported(tmp_path / "m.pt")


def test_a_folder_that_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a checkpoint folder with metadata\.json"):
        export_checkpoint(tmp_path, tmp_path / "out", "torchscript")
    (tmp_path / "metadata.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"expected a checkpoint of format 1, got one of an older gnnperf"):
        export_checkpoint(tmp_path, tmp_path / "out", "torchscript")


def test_a_folder_that_cannot_be_written(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*file"):
        export_checkpoint(checkpoint, tmp_path / "file" / "out", "torchscript")
