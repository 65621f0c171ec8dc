"""Program graphs as JSON and as networkx graphs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gnnperf.errors import InputError
from gnnperf.graph.program_graph import Edge, Node, ProgramGraph

if TYPE_CHECKING:
    import networkx as nx

SCHEMA_VERSION = 1


def to_dict(graph: ProgramGraph) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "nodes": [{"kind": n.kind, "label": n.label, "features": dict(n.features)} for n in graph.nodes],
        "edges": [
            {"source": e.source, "target": e.target, "kind": e.kind, "features": dict(e.features)}
            for e in graph.edges
        ],
        "values": dict(graph.values),
    }
    if graph.profile is not None:
        document["profile"] = dict(graph.profile)
    return document


def from_dict(document: Mapping[str, Any]) -> ProgramGraph:
    version = document.get("schema_version") if isinstance(document, Mapping) else None
    if version != SCHEMA_VERSION:
        raise InputError(f"expected a program graph of schema version {SCHEMA_VERSION}, got {version!r}")
    try:
        nodes = tuple(Node(n["kind"], n["features"], n.get("label", "")) for n in document["nodes"])
        edges = tuple(Edge(e["source"], e["target"], e["kind"], e["features"]) for e in document["edges"])
        return ProgramGraph(nodes, edges, document["values"], document.get("profile"))
    except (KeyError, TypeError) as error:
        raise InputError(f"expected a program graph (nodes, edges, values), got {error!r}") from error


def to_json(graph: ProgramGraph, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(to_dict(graph), sort_keys=True, indent=indent, separators=separators)


def from_json(text: str) -> ProgramGraph:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"expected the JSON of a program graph, got no JSON: {error}") from error
    return from_dict(document)


def to_networkx(graph: ProgramGraph) -> nx.MultiDiGraph:
    import networkx as nx

    result = nx.MultiDiGraph(values=dict(graph.values), profile=graph.profile)
    for i, node in enumerate(graph.nodes):
        result.add_node(i, kind=node.kind, label=node.label, **node.features)
    for edge in graph.edges:
        result.add_edge(edge.source, edge.target, kind=edge.kind, **edge.features)
    return result


def from_networkx(graph: nx.MultiDiGraph) -> ProgramGraph:
    position = {name: i for i, name in enumerate(graph)}
    try:
        nodes = [Node(d["kind"], _fields(d), d.get("label", "")) for _, d in graph.nodes(data=True)]
        edges = [Edge(position[s], position[t], d["kind"], _fields(d)) for s, t, d in graph.edges(data=True)]
    except KeyError as error:
        raise InputError(f"expected every node and edge to have {error}, got one without") from error
    return ProgramGraph(tuple(nodes), tuple(edges), graph.graph.get("values", {}), graph.graph.get("profile"))


def _fields(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in attributes.items() if k not in ("kind", "label")}
