"""The program graph of one loop nest: typed nodes, typed edges and graph-level values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnperf.documents import from_json
from gnnperf.errors import InputError
from gnnperf.graph.canonical import digest
from gnnperf.graph.fields import Value, checked, fields_of
from gnnperf.graph.vocabulary import ENDPOINTS

if TYPE_CHECKING:
    import networkx as nx
    from torch_geometric.data import Data, HeteroData

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its kind, its fields (see `gnnperf.graph.fields`), and a label for people only."""

    kind: str
    features: Mapping[str, Value]
    label: str = ""

    def __getitem__(self, name: str) -> Value:
        """Value of a field, its default when left out."""
        return _value("node", self.kind, self.features, name)

    def number(self, name: str) -> float:
        """Value of a field that is a number."""
        return _number(self[name])


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed edge between two nodes, by their positions in `ProgramGraph.nodes`."""

    source: int
    target: int
    kind: str
    features: Mapping[str, Value] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Value:
        """Value of a field, its default when left out."""
        return _value("edge", self.kind, self.features, name)

    def number(self, name: str) -> float:
        """Value of a field that is a number."""
        return _number(self[name])


@dataclass(frozen=True)
class ProgramGraph:
    """The annotated graph of a nest, with or without a schedule applied (design, section 4).

    Construction checks everything against the field registry and sorts the edges, so equality does
    not depend on the order in which edges were added. Labels and the profile are not part of the
    program: the digest ignores them.

    values: graph-level fields. profile: the dynamic profile where the nest was profiled, else None.
    Raises InputError for unknown kinds, fields, values, or edges that join the wrong kinds.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    values: Mapping[str, Value]
    profile: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        nodes = tuple(Node(n.kind, checked("node", n.kind, n.features), n.label) for n in self.nodes)
        edges = [Edge(e.source, e.target, e.kind, _edge_features(e)) for e in self.edges]
        for e in edges:
            if not (0 <= e.source < len(nodes) and 0 <= e.target < len(nodes)):
                raise InputError(f"expected edge ends below {len(nodes)}, got {e.source} -> {e.target}")
            ends = nodes[e.source].kind, nodes[e.target].kind
            if ends not in ENDPOINTS[e.kind]:
                raise InputError(f"expected {e.kind!r} to join {sorted(ENDPOINTS[e.kind])}, got {ends}")
        alike = Counter((e.source, e.target, e.kind) for e in edges)
        edges.sort(key=lambda e: _place(e, alike))
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "edges", tuple(edges))
        object.__setattr__(self, "values", checked("graph", "", self.values))

    def number(self, name: str) -> float:
        """A graph-level field that is a number; 0 when left out."""
        return _number(self.values.get(name, 0))

    @cached_property
    def digest(self) -> str:
        """Canonical hash, 32 hex digits: equal for isomorphic graphs, whatever names and orders."""
        return digest(self)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Nodes 0..n-1 with attributes kind, label and fields; edges with kind and fields."""
        import networkx as nx

        result = nx.MultiDiGraph(values=dict(self.values), profile=self.profile)
        for i, node in enumerate(self.nodes):
            result.add_node(i, kind=node.kind, label=node.label, **node.features)
        for edge in self.edges:
            result.add_edge(edge.source, edge.target, kind=edge.kind, **edge.features)
        return result

    @staticmethod
    def from_networkx(graph: nx.MultiDiGraph) -> ProgramGraph:
        """The inverse of `to_networkx`; node names may be anything, their order is kept."""
        position = {name: i for i, name in enumerate(graph)}
        try:
            nodes = [Node(d["kind"], _fields(d), d.get("label", "")) for _, d in graph.nodes(data=True)]
            edges = [
                Edge(position[s], position[t], d["kind"], _fields(d)) for s, t, d in graph.edges(data=True)
            ]
        except KeyError as error:
            raise InputError(f"expected every node and edge to have {error}, got one without") from error
        about = graph.graph
        return ProgramGraph(tuple(nodes), tuple(edges), about.get("values", {}), about.get("profile"))

    def to_pyg(self, hetero: bool = False) -> Data | HeteroData:
        """For torch-geometric: what networks read, by the names of `GraphBatch`, and every field.

        A `Batch` of these feeds a network: `encoder(*GraphBatch.of(batch))`. See `gnnperf.graph.pyg`.

        Args:
            hetero: a store for each of NODE_KINDS, and one for each (source kind, edge kind, target kind).
        """
        from gnnperf.graph.pyg import to_data, to_hetero

        return to_hetero(self) if hetero else to_data(self)

    @staticmethod
    def from_pyg(data: Data | HeteroData) -> ProgramGraph:
        """The inverse of `to_pyg`, also of what `get_example` takes from a batch.

        Raises InputError where the data are not what `to_pyg` makes of a graph.
        """
        from gnnperf.graph.pyg import json_of, require_made_of

        graph = ProgramGraph.from_json(json_of(data))
        require_made_of(graph, data)
        return graph

    def to_dict(self) -> dict[str, Any]:
        """A JSON object; `from_dict` restores an equal graph."""
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "nodes": [{"kind": n.kind, "label": n.label, "features": dict(n.features)} for n in self.nodes],
            "edges": [
                {"source": e.source, "target": e.target, "kind": e.kind, "features": dict(e.features)}
                for e in self.edges
            ],
            "values": dict(self.values),
        }
        if self.profile is not None:
            document["profile"] = dict(self.profile)
        return document

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> ProgramGraph:
        """Raises InputError where the document is not a graph of this schema version."""
        version = document.get("schema_version") if isinstance(document, Mapping) else None
        if version != SCHEMA_VERSION:
            raise InputError(f"expected a program graph of schema version {SCHEMA_VERSION}, got {version!r}")
        try:
            nodes = tuple(Node(n["kind"], n["features"], n.get("label", "")) for n in document["nodes"])
            edges = tuple(Edge(e["source"], e["target"], e["kind"], e["features"]) for e in document["edges"])
            return ProgramGraph(nodes, edges, document["values"], document.get("profile"))
        except (AttributeError, KeyError, OverflowError, TypeError) as error:
            raise InputError(f"expected a program graph (nodes, edges, values), got {error!r}") from error

    def to_json(self, indent: int | None = None) -> str:
        """Deterministic: equal graphs give equal text."""
        separators = (",", ":") if indent is None else (",", ": ")
        return json.dumps(self.to_dict(), sort_keys=True, indent=indent, separators=separators)

    @staticmethod
    def from_json(text: str) -> ProgramGraph:
        """Raises InputError where the text is not a graph of this schema version."""
        try:
            document = from_json(text)
        except ValueError as error:
            raise InputError(f"expected the JSON of a program graph, got no JSON: {error}") from error
        return ProgramGraph.from_dict(document)

    def draw(self, path: str | Path) -> None:
        """Write a picture (.svg, .png or .pdf): loops top-down, then computations, accesses, buffers."""
        from gnnperf.graph.drawing import draw

        draw(self, Path(path))


def _edge_features(edge: Edge) -> Mapping[str, Value]:
    """Canonical fields; many edges have the same ones, which are checked once."""
    try:
        return _checked_once(edge.kind, tuple(edge.features.items()))
    except TypeError:  # not hashable, hence no value of an edge: `checked` says so
        return checked("edge", edge.kind, edge.features)


@lru_cache(1 << 16)
def _checked_once(kind: str, features: tuple[tuple[str, Value], ...]) -> Mapping[str, Value]:
    return checked("edge", kind, dict(features))


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _fields(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in attributes.items() if k not in ("kind", "label")}


def _place(edge: Edge, alike: Mapping[tuple[int, int, str], int]) -> tuple[tuple[int, int, str], str]:
    """What edges are sorted by: their fields count where several of a kind join the same nodes."""
    ends = edge.source, edge.target, edge.kind
    return ends, repr(edge.features) if alike[ends] > 1 else ""


def _value(level: Any, kind: str, features: Mapping[str, Value], name: str) -> Value:
    if name in features:
        return features[name]
    default = fields_of(level, kind)[name].default
    assert default is not None, f"{kind} without its required field {name}"
    return default
