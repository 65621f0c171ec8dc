"""Exported models compute what the checkpoint computes, at any size, and say what they are made for."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import GOLDEN
from helpers.made_up_model import CPU, RELEASED, example_programs, senseless_programs
from helpers.random_graphs import program_graphs
from helpers.synthetic import lonely, nest_like
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnperf.errors import InputError
from gnnperf.export import ExportedModel, export_checkpoint, load_exported, open_flat
from gnnperf.export.exporting import read_checkpoint
from gnnperf.export.metadata import build_metadata
from gnnperf.export.torchscript import save_torchscript
from gnnperf.graph import EDGE_FEATURES, NODE_FEATURES, Node, ProgramGraph, collate, encode
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn import (
    Bundle,
    Encoder,
    EncoderConfig,
    HeadConfig,
    ScheduleHead,
    load_checkpoint,
    save_checkpoint,
)
from gnnperf.schedules.recipes import fact_fields

TOLERANCE = 1e-6
GRAPHS = [ProgramGraph.from_json(path.read_text()) for path in sorted((GOLDEN / "graphs").glob("*.json"))]


def apart(model: ExportedModel, bundle: Bundle, graphs: Sequence[ProgramGraph]) -> float:
    return float(np.abs(model.embed(graphs) - bundle.embed(graphs)).max())


def test_golden_graphs_embed_alike_one_by_one_and_in_a_batch(model: ExportedModel, made_up: Bundle) -> None:
    assert len(GRAPHS) > 10
    assert apart(model, made_up, GRAPHS) < TOLERANCE
    for graph in GRAPHS:
        assert apart(model, made_up, [graph]) < TOLERANCE


@given(st.lists(program_graphs(), min_size=1, max_size=4))
@settings(max_examples=40)
def test_random_graphs_embed_alike(model: ExportedModel, made_up: Bundle, graphs: list[ProgramGraph]) -> None:
    assert apart(model, made_up, graphs) < TOLERANCE


def test_one_node_and_no_edge(model: ExportedModel, made_up: Bundle) -> None:
    assert apart(model, made_up, [lonely()]) < TOLERANCE
    assert apart(model, made_up, [lonely(), nest_like([3, 4]), lonely("exp")]) < TOLERANCE


def test_a_hundred_thousand_nodes(model: ExportedModel, made_up: Bundle) -> None:
    n, e = 100_000, 50_000
    chance = torch.Generator().manual_seed(0)
    inputs = list(collate([encode(lonely())]))
    inputs[0] = torch.randint(0, 5, (n,), generator=chance)
    inputs[1] = torch.randn(n, NODE_FEATURES, generator=chance)
    inputs[2] = torch.randint(0, n, (2, e), generator=chance)
    inputs[3] = torch.randint(0, 12, (e,), generator=chance)
    inputs[4] = torch.randn(e, EDGE_FEATURES, generator=chance)
    inputs[6], inputs[7] = torch.tensor([0, n]), torch.zeros(n, dtype=torch.int64)
    with torch.inference_mode():
        expected = made_up.encoder(*inputs)
    assert (model.call("embed", *inputs)[0] - expected).abs().max() < TOLERANCE


def test_scheduled_programs_score_alike_one_by_one_and_in_a_batch(
    model: ExportedModel, made_up: Bundle
) -> None:
    programs = example_programs()
    expected = made_up.score(programs)
    assert len(programs) > 20 and expected.std() > 1e-3
    np.testing.assert_allclose(model.score(programs), expected, atol=TOLERANCE)
    for program in programs[::5]:
        np.testing.assert_allclose(model.score([program]), made_up.score([program]), atol=TOLERANCE)
    assert model.score([]).shape == (0,)


@given(st.lists(program_graphs(), min_size=1, max_size=4), st.integers(0, 2**32))
@settings(max_examples=40)
def test_random_programs_score_alike(
    model: ExportedModel, made_up: Bundle, graphs: list[ProgramGraph], seed: int
) -> None:
    programs = senseless_programs(graphs, seed)
    np.testing.assert_allclose(model.score(programs), made_up.score(programs), atol=TOLERANCE)


def test_programs_without_edges_or_statements_score_alike(model: ExportedModel, made_up: Bundle) -> None:
    buffer = ProgramGraph((Node("buffer", {"dtype": "float32", "scope": "global"}),), (), {})
    for graphs in ([lonely()], [buffer], [buffer, nest_like([3, 4]), lonely("exp")]):
        programs = senseless_programs(graphs, 0)
        np.testing.assert_allclose(model.score(programs), made_up.score(programs), atol=TOLERANCE)


def test_an_encoder_that_passes_no_messages(tmp_path: Path) -> None:
    torch.manual_seed(0)
    encoder = Encoder(EncoderConfig(width=16, layers=0, embedding_width=8))
    head = ScheduleHead(16, len(fact_fields()), HeadConfig(width=8, numbers_width=8))
    bundle = Bundle(encoder.eval(), head.eval())
    save_checkpoint(tmp_path, bundle)
    export_checkpoint(tmp_path, tmp_path / "out", "torchscript")
    model, programs = load_exported(tmp_path / "out" / "model.pt"), example_programs()[:9]
    assert apart(model, bundle, GRAPHS) < TOLERANCE
    np.testing.assert_allclose(model.score(programs), bundle.score(programs), rtol=TOLERANCE, atol=TOLERANCE)


def test_the_released_checkpoint_is_exported(tmp_path: Path) -> None:
    released, programs = load_checkpoint(RELEASED, Bundle), example_programs()
    done = export_checkpoint(RELEASED, tmp_path, "torchscript")
    model = load_exported(done.model)
    assert apart(model, released, GRAPHS) < TOLERANCE
    np.testing.assert_allclose(model.score(programs), released.score(programs), atol=TOLERANCE)
    assert done.store is not None
    assert open_flat(done.store).header["encoder_id"] == model.metadata["encoder_id"] == released.encoder_id


def test_tensors_that_do_not_fit_are_refused(model: ExportedModel) -> None:
    inputs = list(collate([encode(lonely())]))
    with pytest.raises(InputError, match=r"expected a function out of embed, score, got 'predict'"):
        model.call("predict", *inputs)
    with pytest.raises(InputError, match=r"embed: expected 8 tensors \(node_kind, .*\), got 7"):
        model.call("embed", *inputs[:-1])
    wide = torch.zeros(1, NODE_FEATURES + 1)
    expected = (
        rf"node_features: expected float32\[n, {NODE_FEATURES}\].*, got float32\[1, {NODE_FEATURES + 1}\]"
    )
    with pytest.raises(InputError, match=expected):
        model.call("embed", inputs[0], wide, *inputs[2:])
    with pytest.raises(InputError, match=r"batch: expected int64\[n\] with n=1, .*, got int64\[2\]"):
        model.call("embed", *inputs[:7], torch.zeros(2, dtype=torch.int64))
    with pytest.raises(InputError, match=r"node_kind: expected int64\[n\].*, got float32\[1\]"):
        model.call("embed", torch.zeros(1), *inputs[1:])
    costs, facts = torch.zeros(1, len(COST_FIELDS)), torch.zeros(2, len(fact_fields()))
    with pytest.raises(InputError, match=r"facts: expected float32\[b, .*\] with .*b=1, got float32\[2, "):
        model.call("score", *inputs, costs, facts)
    with pytest.raises(InputError, match=r"node_costs: expected float32\[n, .*\] with n=1.*, got .*\[3, "):
        model.call("score", *inputs, costs.repeat(3, 1), facts[:1])


def test_the_metadata_says_what_the_model_is(model: ExportedModel, made_up: Bundle) -> None:
    about = model.metadata
    assert about["kind"] == "retrieval"
    assert about["encoder_id"] == made_up.encoder_id
    assert about["embedding_width"] == model.embed([lonely()]).shape[1]
    assert about["corpus"]["digest"] == made_up.provenance.corpus["digest"]
    assert about["device"]["fingerprint"] == CPU
    assert about["licence"] and about["normalisation"]
    extent = next(f for f in about["graph"]["fields"]["node"] if f["name"] == "extent")
    assert extent["unit"] == "iterations" and extent["width"] == 1
    shapes = {spec["name"]: spec["shape"] for spec in about["functions"]["embed"]["inputs"]}
    assert shapes["node_features"] == ["n", NODE_FEATURES] and shapes["ptr"] == ["b+1"]
    assert [spec["name"] for spec in about["functions"]["embed"]["outputs"]] == ["embedding"]
    *_, node_costs, facts = about["functions"]["score"]["inputs"]
    assert node_costs["columns"] == [field["name"] for field in about["cost_fields"]]
    assert facts["columns"] == about["fact_fields"] == list(fact_fields())
    instances = about["cost_fields"][0]
    assert instances["name"] == "instances" and instances["scale"] == "log2"
    assert instances["kinds"] == ["compute", "intrinsic"] and instances["meaning"] and instances["unit"]


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
        (("functions", "embed", "inputs"), [], "inputs of embed is .*0 inputs.*, expected .*8 inputs"),
        (
            ("functions", "score", "inputs", 8, "columns", 1),
            "luck",
            r"inputs of score is \['column luck of node_costs'\], expected \['column threads_share of",
        ),
        (("functions", "score", "inputs", 9, "columns"), [], "column none of facts.*, expected .*of facts"),
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


@pytest.mark.parametrize(
    ("name", "reader"),
    [("m.pt", "torch.jit.load"), ("m.pt2", "torch.export.pt2_archive._package.PT2ArchiveReader")],
)
def test_an_error_of_torch_without_words_is_told(
    name: str, reader: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(reader, fail)
    (tmp_path / name).write_bytes((folder / "model.pt").read_bytes())
    with pytest.raises(InputError, match=r"cannot read .*: RuntimeError; write it again with"):
        load_exported(tmp_path / name)


def test_a_compressed_part_that_cannot_be_read_is_told(folder: Path, tmp_path: Path) -> None:
    data = bytearray((folder / "model.pt").read_bytes())
    with zipfile.ZipFile(folder / "model.pt") as archive:
        part = max((p for p in archive.infolist() if p.compress_type), key=lambda p: p.compress_size)
    begin = part.header_offset + 30 + int.from_bytes(data[part.header_offset + 26 :][:2], "little")
    begin += int.from_bytes(data[part.header_offset + 28 :][:2], "little")
    data[begin : begin + 64] = b"\xff" * 64
    (tmp_path / "m.pt").write_bytes(data)
    with pytest.raises(InputError, match=r"cannot read .*m.pt: Error -3 .*; write it again with"):
        load_exported(tmp_path / "m.pt")


def test_a_flipped_bit_is_found(folder: Path, tmp_path: Path) -> None:
    """torch loads such a file without a word."""
    path, content = tmp_path / "m.pt", bytearray((folder / "model.pt").read_bytes())
    with zipfile.ZipFile(folder / "model.pt") as archive:
        largest = max(archive.infolist(), key=lambda entry: entry.file_size)
    content[largest.header_offset + 30 + len(largest.filename) + largest.compress_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{largest.filename}: the checksum is not the one"):
        load_exported(path)


def test_torchscript_of_somebody_else(tmp_path: Path) -> None:
    save_torchscript(tmp_path / "m.pt", (), "")
    with pytest.raises(InputError, match="expected metadata of gnnperf inside"):
        load_exported(tmp_path / "m.pt")


def test_a_folder_that_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a checkpoint folder with metadata\.json"):
        export_checkpoint(tmp_path, tmp_path / "out", "torchscript")
    (tmp_path / "metadata.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match=r"format: got None, expected 1"):
        export_checkpoint(tmp_path, tmp_path / "out", "torchscript")


def test_a_folder_that_cannot_be_written(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*file"):
        export_checkpoint(checkpoint, tmp_path / "file" / "out", "torchscript")
