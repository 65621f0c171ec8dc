"""Construction is checked and canonical; JSON and networkx give back an equal graph."""

from __future__ import annotations

import json

import networkx as nx
import pytest
from graph.graphs import digraph, tensorized

from gnnperf.errors import InputError
from gnnperf.graph import Edge, Node, ProgramGraph


def loop(**fields: object) -> Node:
    return Node("loop", {"loop_kind": "spatial", **fields})  # type: ignore[dict-item]


def test_defaults_are_left_out_and_numbers_canonical() -> None:
    (node,) = ProgramGraph((loop(extent=8.0, step=0, annotation="none", chunk=0.1 + 0.2),), (), {}).nodes
    assert dict(node.features) == {"loop_kind": "spatial", "extent": 8, "chunk": 0.3}
    assert (node["annotation"], node["step"], node["innermost"]) == ("none", 0, False)


def test_equality_does_not_depend_on_the_order_of_edges() -> None:
    nodes = tuple(loop() for _ in range(3))
    edges = (Edge(0, 1, "contains"), Edge(0, 2, "contains"))
    assert ProgramGraph(nodes, edges, {}) == ProgramGraph(nodes, edges[::-1], {})


@pytest.mark.parametrize(
    ("nodes", "edges", "values", "message"),
    [
        ([Node("block", {})], [], {}, "'block'"),
        ([Node("loop", {})], [], {}, "loop_kind"),
        ([loop(extend=3)], [], {}, "'extend'"),
        ([loop(extent=float("nan"))], [], {}, "number"),
        ([loop(extent="8")], [], {}, "number"),
        ([loop(innermost=1)], [], {}, "flag"),
        ([loop(annotation="paralel")], [], {}, "parallel"),
        ([Node("compute", {"operations": {"fma": 1}, "dtype": "float32"})], [], {}, "histogram"),
        ([Node("compute", {"operations": {"add": "many"}, "dtype": "float32"})], [], {}, "histogram"),  # type: ignore[dict-item]
        ([loop(annotation=["parallel"])], [], {}, "parallel"),
        ([loop()], [Edge(0, 1, "contains")], {}, "0 -> 1"),
        ([loop(), loop()], [Edge(0, 1, "holds")], {}, "'holds'"),
        ([loop(), loop()], [Edge(0, 1, "writes")], {}, "'writes'"),
        ([loop()], [], {"flops": 3}, "'flops'"),
    ],
)  # fmt: skip
def test_what_the_registry_does_not_know_is_refused(
    nodes: list[Node], edges: list[Edge], values: dict[str, float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ProgramGraph(tuple(nodes), tuple(edges), values)


def test_round_trips() -> None:
    graph = tensorized()
    profiled = ProgramGraph(graph.nodes, graph.edges, graph.values, {"runtime_s": 1e-3})
    for each in (graph, profiled, digraph(2, {(0, 0): 1})):
        assert ProgramGraph.from_json(each.to_json()) == each
        assert ProgramGraph.from_dict(json.loads(each.to_json(indent=1))) == each
        assert ProgramGraph.from_networkx(each.to_networkx()) == each


def test_json_is_deterministic() -> None:
    assert tensorized().to_json() == tensorized().to_json()
    assert "\n" not in tensorized().to_json()


def test_networkx_nodes_may_have_any_name() -> None:
    graph = tensorized()
    names = {i: f"node {i}" for i in range(len(graph.nodes))}
    assert ProgramGraph.from_networkx(nx.relabel_nodes(graph.to_networkx(), names)).digest == graph.digest


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"schema_version": 1}', '{"schema_version": 99}'])
def test_what_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected"):
        ProgramGraph.from_json(text)


def test_networkx_without_kinds_is_refused() -> None:
    graph = nx.MultiDiGraph()
    graph.add_node("a", extent=3)
    with pytest.raises(InputError, match="kind"):
        ProgramGraph.from_networkx(graph)
