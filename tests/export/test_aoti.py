"""Compiled models compute what the checkpoint computes, at sizes that they were not compiled with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import GOLDEN
from helpers.made_up_model import example_programs, senseless_programs
from helpers.random_graphs import program_graphs
from helpers.synthetic import lonely, nest_like
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnperf.errors import InputError
from gnnperf.export import ExportedModel, load_exported
from gnnperf.export.aoti import compiled_for
from gnnperf.export.metadata import check_metadata
from gnnperf.graph import EDGE_FEATURES, NODE_FEATURES, ProgramGraph, collate, encode
from gnnperf.nn import Bundle, ScheduledProgram, load_checkpoint

GRAPHS = [ProgramGraph.from_json(path.read_text()) for path in sorted((GOLDEN / "graphs").glob("*.json"))]


@pytest.fixture(scope="module")
def small(compiled_folder: Path) -> Bundle:
    return load_checkpoint(compiled_folder, Bundle)


@pytest.fixture(scope="module")
def compiled(compiled_folder: Path) -> ExportedModel:
    return load_exported(compiled_folder / "out" / "model.pt2")


def apart(compiled: ExportedModel, small: Bundle, graphs: list[ProgramGraph]) -> float:
    return float(np.abs(compiled.embed(graphs) - small.embed(graphs)).max())


@pytest.mark.slow
def test_golden_graphs_embed_alike(compiled: ExportedModel, small: Bundle) -> None:
    assert apart(compiled, small, GRAPHS) < 1e-5
    assert max(apart(compiled, small, [graph]) for graph in GRAPHS) < 1e-5


@pytest.mark.slow
@given(st.lists(program_graphs(), min_size=1, max_size=4))
@settings(max_examples=30)
def test_random_graphs_embed_alike(
    compiled: ExportedModel, small: Bundle, graphs: list[ProgramGraph]
) -> None:
    assert apart(compiled, small, graphs) < 1e-5


@pytest.mark.slow
def test_one_node_and_no_edge(compiled: ExportedModel, small: Bundle) -> None:
    assert apart(compiled, small, [lonely()]) < 1e-5
    assert apart(compiled, small, [lonely(), nest_like([3, 4]), lonely("exp")]) < 1e-5


@pytest.mark.slow
def test_a_hundred_thousand_nodes(compiled: ExportedModel, small: Bundle) -> None:
    n, e = 100_000, 150_001
    chance = torch.Generator().manual_seed(0)
    inputs = list(collate([encode(lonely())]))
    inputs[:5] = (
        torch.randint(0, 5, (n,), generator=chance),
        torch.randn(n, NODE_FEATURES, generator=chance),
        torch.randint(0, n, (2, e), generator=chance),
        torch.randint(0, 12, (e,), generator=chance),
        torch.randn(e, EDGE_FEATURES, generator=chance),
    )
    inputs[6:8] = torch.tensor([0, n]), torch.zeros(n, dtype=torch.int64)
    with torch.inference_mode():
        expected = small.encoder(*inputs)
    assert (compiled.call("embed", *inputs)[0] - expected).abs().max() < 1e-5


def scores_apart(compiled: ExportedModel, small: Bundle, programs: list[ScheduledProgram]) -> float:
    return float(np.abs(compiled.score(programs) - small.score(programs)).max())


@pytest.mark.slow
def test_scheduled_programs_score_alike(compiled: ExportedModel, small: Bundle) -> None:
    programs = example_programs()
    assert scores_apart(compiled, small, programs) < 1e-5
    assert max(scores_apart(compiled, small, [program]) for program in programs[::5]) < 1e-5


@pytest.mark.slow
@given(st.lists(program_graphs(), min_size=1, max_size=4), st.integers(0, 2**32))
@settings(max_examples=30)
def test_random_programs_score_alike(
    compiled: ExportedModel, small: Bundle, graphs: list[ProgramGraph], seed: int
) -> None:
    assert scores_apart(compiled, small, senseless_programs(graphs, seed)) < 1e-5


@pytest.mark.slow
def test_programs_without_edges_score_alike(compiled: ExportedModel, small: Bundle) -> None:
    for graphs in ([lonely()], [lonely(), nest_like([3, 4]), lonely("exp")]):
        assert scores_apart(compiled, small, senseless_programs(graphs, 0)) < 1e-5


@pytest.mark.slow
def test_what_was_compiled_for_another_machine_is_refused(compiled: ExportedModel) -> None:
    assert compiled.metadata["compiled_for"] == compiled_for()
    for change, message in (
        ({"compiled_for": {"AOTI_CPU_ISA": "asimd"}}, r"compiled_for is .*asimd.*, expected "),
        ({"versions": {"torch": "2.0.0"}}, "torch version is 2.0.0, expected "),
        ({"backend": "torchscript"}, "backend is torchscript, expected aoti"),
    ):
        text = json.dumps({**compiled.metadata, **change})
        with pytest.raises(InputError, match=message):
            check_metadata(Path("m.pt2"), text, "aoti")


def test_files_that_are_no_artefact(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*m\.pt2"):
        load_exported(tmp_path / "m.pt2")
    (tmp_path / "m.pt2").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"cannot read .*m\.pt2"):
        load_exported(tmp_path / "m.pt2")
