"""Pictures: written in every format, with what a person looks for, laid out without overlaps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from graph.graphs import tensorized
from nests.examples import EXAMPLES, spmm, tiled_gemm

from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph
from gnnperf.graph.layout import layered_layout
from gnnperf.nests.to_graph import nest_graph


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_formats(suffix: str, magic: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"graph{suffix}"
    nest_graph(tiled_gemm()).draw(path)
    assert path.read_bytes().startswith(magic)


def test_the_picture_says_what_matters_and_is_reproducible(tmp_path: Path) -> None:
    graph = nest_graph(spmm(), {"p": 8.0})
    for name in ("a.svg", "b.svg"):
        graph.draw(tmp_path / name)
    text = (tmp_path / "a.svg").read_text(encoding="utf-8").replace("\u00a0", " ")
    for words in (
        "data-dependent",
        "B[indices[p], f]",
        "i: indirect, p: indirect, f: 8 B",
        "256 kFLOP",
        "indexes",
    ):
        assert words in text
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_intrinsics_and_empty_graphs_are_drawn(tmp_path: Path) -> None:
    tensorized().draw(tmp_path / "mma.svg")
    assert "16 × 8 × 16" in (tmp_path / "mma.svg").read_text(encoding="utf-8")
    ProgramGraph((), (), {}).draw(tmp_path / "empty.svg")


@pytest.mark.parametrize("name", EXAMPLES)
def test_layout(name: str) -> None:
    """Loops stand above what they contain, accesses above buffers; neighbours in a row do not overlap."""
    graph = nest_graph(EXAMPLES[name]())
    place = layered_layout(graph)
    for edge in graph.edges:
        if edge.kind == "contains":
            assert place[edge.source][1] < place[edge.target][1]
    rows: dict[int, list[float]] = {}
    for x, row in place.values():
        assert x >= 0
        rows.setdefault(row, []).append(x)
    for positions in rows.values():
        assert all(b - a >= 1 - 1e-9 for a, b in pairwise(sorted(positions)))
    lowest = {kind: max(place[i][1] for i, n in enumerate(graph.nodes) if n.kind == kind)
              for kind in ("loop", "compute", "access", "buffer")}  # fmt: skip
    assert sorted(lowest, key=lambda k: lowest[k]) == ["loop", "compute", "access", "buffer"]


def test_bad_paths_are_input_errors(tmp_path: Path) -> None:
    graph = tensorized()
    with pytest.raises(InputError, match=r"\.svg"):
        graph.draw(tmp_path / "graph.txt")
    with pytest.raises(InputError, match="can be written"):
        graph.draw(tmp_path / "missing" / "graph.svg")
