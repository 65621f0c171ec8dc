"""Program graphs become data of torch-geometric, alone and in batches, and come back as they were."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from graph.graphs import digraph, tensorized
from helpers.random_graphs import program_graphs
from helpers.synthetic import lonely, nest_like
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader

from gnnperf.errors import InputError
from gnnperf.graph import EDGE_KINDS, NODE_KINDS, GraphBatch, Node, ProgramGraph, collate, encode
from gnnperf.graph.pyg import EDGE_TYPES, columns

PARTS = r"expected all of what ProgramGraph\.to_pyg of this version made"
HETERO = pytest.mark.parametrize("hetero", [False, True])


@HETERO
@given(graphs=st.lists(program_graphs(), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_round_trips(hetero: bool, graphs: list[ProgramGraph]) -> None:
    each = [graph.to_pyg(hetero) for graph in graphs]
    batch = Batch.from_data_list(each)
    apart = [batch.get_example(number) for number in range(len(graphs))]
    for graph, *others in zip(graphs, each, apart, strict=True):
        for data in others:
            data.validate()
            again = ProgramGraph.from_pyg(data)
            assert again == graph
            assert again.digest == graph.digest


@HETERO
def test_labels_profiles_and_no_edges_round_trip(hetero: bool) -> None:
    graph = tensorized()
    profiled = ProgramGraph(graph.nodes, graph.edges, graph.values, {"runtime_s": 1e-3})
    for each in (profiled, lonely(), digraph(2, {(0, 0): 1}), ProgramGraph((), (), {})):
        assert ProgramGraph.from_pyg(each.to_pyg(hetero)) == each


@HETERO
@pytest.mark.parametrize("number", [2**53 + 1, -(3**40), 2**80, 10**30 + 1, 0.1, 1e-300])
def test_numbers_are_kept_exactly(hetero: bool, number: float) -> None:
    graph = ProgramGraph(
        (Node("loop", {"loop_kind": "spatial", "extent": number}),), (), {"statements": number}
    )
    assert ProgramGraph.from_pyg(graph.to_pyg(hetero)) == graph


@given(st.lists(program_graphs(), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_batch_is_what_collation_makes(graphs: list[ProgramGraph]) -> None:
    batch = GraphBatch.of(Batch.from_data_list([graph.to_pyg() for graph in graphs]))
    for got, expected in zip(batch, collate([encode(graph) for graph in graphs]), strict=True):
        assert got.dtype == expected.dtype and torch.equal(got, expected)


def test_a_loader_collates() -> None:
    graphs = [nest_like([8, 16]), lonely(), tensorized()]
    (batch,) = DataLoader([graph.to_pyg() for graph in graphs], batch_size=3)
    assert torch.equal(GraphBatch.of(batch).ptr, collate([encode(graph) for graph in graphs]).ptr)


def test_fields_are_named() -> None:
    graph = tensorized()
    data = graph.to_pyg()
    (mma,) = (i for i, node in enumerate(graph.nodes) if node.kind == "intrinsic")
    row = dict(zip(columns("node"), data.node_fields[mma].tolist(), strict=True))
    assert (row["m_extent"], row["flops"], row["extent"]) == (16, 4096, 0)
    assert (row["dtype"], row["scope"], row["operations=mul"]) == (0, -1, 0)
    assert data.graph_fields[0, columns("graph").index("total_flops")] == 4096 * 4096


def test_the_view_has_a_store_for_each_kind() -> None:
    graph = nest_like([8, 16], reduction=True)
    view = graph.to_pyg(hetero=True)
    assert isinstance(view, HeteroData)
    assert tuple(view.node_types) == NODE_KINDS
    assert tuple(view.edge_types) == EDGE_TYPES
    assert {relation for _, relation, _ in EDGE_TYPES} == set(EDGE_KINDS)
    for kind in NODE_KINDS:
        assert view[kind].num_nodes == sum(node.kind == kind for node in graph.nodes)
    for source, relation, target in EDGE_TYPES[: len(EDGE_TYPES) // 2]:
        ends = [
            e
            for e in graph.edges
            if (graph.nodes[e.source].kind, e.kind, graph.nodes[e.target].kind) == (source, relation, target)
        ]
        forward, back = view[source, relation, target], view[target, f"{relation}_reversed", source]
        assert forward.edge_index.shape == (2, len(ends))
        assert torch.equal(back.edge_index, forward.edge_index.flip(0))


def test_what_to_pyg_did_not_make_is_refused() -> None:
    data = tensorized().to_pyg()
    with pytest.raises(InputError, match="a batch of 2; take one with get_example"):
        ProgramGraph.from_pyg(Batch.from_data_list([data, data]))
    with pytest.raises(InputError, match=PARTS):
        ProgramGraph.from_pyg(data.subgraph(torch.tensor([0, 1])))
    for name in ("about", "node_fields", "edge_index"):
        without = data.clone()
        del without[name]
        with pytest.raises(InputError, match=PARTS):
            ProgramGraph.from_pyg(without)
    narrow, changed = data.clone(), data.clone()
    narrow.node_fields = narrow.node_fields[:, 1:]
    changed.node_features[0, 0] += 1
    for other in (narrow, changed, Data(about=lonely().to_json()), HeteroData(about=lonely().to_json())):
        with pytest.raises(InputError, match=PARTS):
            ProgramGraph.from_pyg(other)
    later = data.clone()
    later.about = later.about.replace('"schema_version":1', '"schema_version":2')
    with pytest.raises(InputError, match="schema version 1, got 2"):
        ProgramGraph.from_pyg(later)


@pytest.mark.parametrize("code", ["import gnnperf.graph", "import gnnperf; gnnperf.retrieve"])
def test_torch_geometric_is_imported_when_it_is_needed(code: str) -> None:
    code += "; import sys; print('torch_geometric' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
