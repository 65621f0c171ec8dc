"""The encoding follows the registry, and collation only concatenates."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from graph.graphs import digraph, tensorized
from jaxtyping import jaxtyped
from nests.examples import EXAMPLES

import gnnperf.graph.fields as registry
from gnnperf.errors import InputError
from gnnperf.graph import (
    EDGE_FEATURES,
    EDGE_FIELDS,
    EDGE_KINDS,
    GRAPH_FEATURES,
    GRAPH_FIELDS,
    NODE_FEATURES,
    NODE_FIELDS,
    NODE_KINDS,
    RELATIONS,
    Field,
    Node,
    ProgramGraph,
    collate,
    encode,
    schema_digest,
    signed_log2,
)
from gnnperf.graph.encoding import EncodedGraph
from gnnperf.nests.to_graph import nest_graph

GRAPHS = {
    "tensorized": tensorized,
    **{name: lambda make=make: nest_graph(make()) for name, make in EXAMPLES.items()},
}


def column(table: tuple[Field, ...], name: str, choice: str | None = None) -> int:
    """Where a field (or the class of one of its choices) is, counted from the registry alone."""
    offset = 0
    for field in table:
        if field.name == name:
            return offset + (field.classes.index(field.choices[choice]) if choice else 0)
        offset += field.width
    raise AssertionError(name)


@pytest.mark.parametrize("name", GRAPHS)
def test_shapes_and_types(name: str) -> None:
    graph = GRAPHS[name]()
    encoded = encode(graph)
    hints = EncodedGraph.__annotations__
    with jaxtyped("context"):  # type: ignore[attr-defined]
        for f in fields(EncodedGraph):
            assert isinstance(
                getattr(encoded, f.name), eval(hints[f.name], vars(sys.modules[EncodedGraph.__module__]))
            )
    assert encoded.node_features.shape == (len(graph.nodes), NODE_FEATURES)
    assert encoded.edge_features.shape == (2 * len(graph.edges), EDGE_FEATURES)
    assert encoded.graph_features.shape == (GRAPH_FEATURES,)
    assert np.isfinite(encoded.node_features).all()
    assert np.isfinite(encoded.edge_features).all()


def test_every_edge_has_its_reverse() -> None:
    graph = tensorized()
    encoded = encode(graph)
    e = len(graph.edges)
    assert (encoded.edge_index[:, e:] == encoded.edge_index[::-1, :e]).all()
    assert [EDGE_KINDS[k] for k in encoded.edge_kind[e:]] == [
        f"{EDGE_KINDS[k]}_reversed" for k in encoded.edge_kind[:e]
    ]
    assert {EDGE_KINDS[k] for k in encoded.edge_kind[:e]} <= set(RELATIONS)
    assert (encoded.edge_features[e:] == encoded.edge_features[:e]).all()


def test_where_values_go() -> None:
    encoded = encode(tensorized())
    (mma,) = np.flatnonzero(encoded.node_kind == NODE_KINDS.index("intrinsic"))
    row = encoded.node_features[mma]
    expected = {
        column(NODE_FIELDS, "dtype", "bfloat16"): 1.0,  # the class of float16
        column(NODE_FIELDS, "accumulator_dtype", "float32"): 1.0,
        column(NODE_FIELDS, "m_extent"): np.log2(17),
        column(NODE_FIELDS, "n_extent"): np.log2(9),
        column(NODE_FIELDS, "k_extent"): np.log2(17),
        column(NODE_FIELDS, "flops"): np.log2(4097),
        column(NODE_FIELDS, "instances"): np.log2(4097),
        column(NODE_FIELDS, "flops_per_cycle"): np.log2(1025),
    }
    assert dict(zip(np.flatnonzero(row), row[row != 0], strict=True)) == pytest.approx(expected)


def test_operations_of_one_class_are_summed() -> None:
    compute: dict[str, registry.Value] = {"operations": {"add": 2, "sub": 1, "exp": 1}, "dtype": "int8"}
    row = encode(ProgramGraph((Node("compute", compute),), (), {})).node_features[0]
    assert row[column(NODE_FIELDS, "operations", "neg")] == 2.0  # log2(1 + 3)
    assert row[column(NODE_FIELDS, "operations", "log")] == 1.0


def test_signed_logarithm() -> None:
    assert [signed_log2(x) for x in (0, 1, -1, 3, -7)] == [0, 1, -1, 2, -3]


def test_strides_keep_their_sign() -> None:
    graph = tensorized()
    edge = next(e for e in graph.edges if e.kind == "indexes")
    backwards = replace(edge, features={**edge.features, "stride_elements": -3})
    edges = tuple(backwards if e is edge else e for e in graph.edges)
    features = encode(ProgramGraph(graph.nodes, edges, graph.values)).edge_features
    assert features[:, column(EDGE_FIELDS, "stride_elements")].min() == -2


def test_registry() -> None:
    for table, width in (
        (NODE_FIELDS, NODE_FEATURES),
        (EDGE_FIELDS, EDGE_FEATURES),
        (GRAPH_FIELDS, GRAPH_FEATURES),
    ):
        names = [f.name for f in table]
        assert len(set(names)) == len(names)
        assert sum(f.width for f in table) == width
        assert all(f.meaning for f in table)
    assert {k for f in NODE_FIELDS for k in f.kinds} == set(NODE_KINDS)
    assert {k for f in EDGE_FIELDS for k in f.kinds} <= set(RELATIONS)


def test_schema_digest_follows_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    before = schema_digest()
    assert schema_digest() == before
    fewer = {**registry.FIELDS, "graph": registry.GRAPH_FIELDS[1:]}
    monkeypatch.setattr(registry, "FIELDS", fewer)
    assert schema_digest() != before


def test_collation() -> None:
    graphs = [encode(make()) for make in GRAPHS.values()]
    batch = collate(graphs)
    sizes = [len(g.node_kind) for g in graphs]
    assert batch.ptr.tolist() == np.cumsum([0, *sizes]).tolist()
    assert torch.bincount(batch.batch).tolist() == sizes
    assert batch.graph_features.shape == (len(graphs), GRAPH_FEATURES)
    first = 0
    for i, g in enumerate(graphs):
        nodes = slice(batch.ptr[i], batch.ptr[i + 1])
        edges = slice(first, first := first + g.edge_index.shape[1])
        assert (batch.node_features[nodes].numpy() == g.node_features).all()
        assert (batch.node_kind[nodes].numpy() == g.node_kind).all()
        assert (batch.edge_index[:, edges].numpy() - batch.ptr[i].item() == g.edge_index).all()
        assert (batch.edge_features[edges].numpy() == g.edge_features).all()
        assert (batch.edge_kind[edges].numpy() == g.edge_kind).all()
    assert batch.to("meta").node_features.device.type == "meta"
    integers, numbers = torch.int64, torch.float32
    assert [t.dtype for t in batch[:4]] == [integers, numbers, integers, integers]
    assert [t.dtype for t in batch[4:]] == [numbers, numbers, integers, integers]


def test_a_graph_without_edges_is_collated() -> None:
    lone = encode(digraph(1, {}))
    assert lone.edge_index.shape == (2, 0)
    assert collate([lone, lone]).ptr.tolist() == [0, 1, 2]


def test_an_empty_batch_is_an_input_error() -> None:
    with pytest.raises(InputError, match="at least one graph"):
        collate([])


def test_graphs_need_no_torch_and_no_drawing_library() -> None:
    code = "import sys, gnnperf.graph, gnnperf.nests.to_graph; print(*sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"torch", "matplotlib", "networkx", "dace"} & set(output.split())
