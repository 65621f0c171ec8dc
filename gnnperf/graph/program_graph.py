"""The program graph of one loop nest: typed nodes, typed edges and graph-level values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnperf.errors import InputError
from gnnperf.graph.fields import Value, checked, fields_of
from gnnperf.graph.vocabulary import ENDPOINTS

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its kind, its fields (see `gnnperf.graph.fields`), and a label for people only."""

    kind: str
    features: Mapping[str, Value]
    label: str = ""

    def __getitem__(self, name: str) -> Value:
        """Value of a field, its default when left out."""
        return _value("node", self.kind, self.features, name)


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
        edges = [Edge(e.source, e.target, e.kind, checked("edge", e.kind, e.features)) for e in self.edges]
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

    @cached_property
    def digest(self) -> str:
        """Canonical hash, 32 hex digits: equal for isomorphic graphs, whatever names and orders."""
        from gnnperf.graph.canonical import digest

        return digest(self)

    def to_networkx(self) -> nx.MultiDiGraph:
        """Nodes 0..n-1 with attributes kind, label and fields; edges with kind and fields."""
        from gnnperf.graph.serialization import to_networkx

        return to_networkx(self)

    @staticmethod
    def from_networkx(graph: nx.MultiDiGraph) -> ProgramGraph:
        """The inverse of `to_networkx`; node names may be anything, their order is kept."""
        from gnnperf.graph.serialization import from_networkx

        return from_networkx(graph)

    def to_dict(self) -> dict[str, Any]:
        """A JSON object; `from_dict` restores an equal graph."""
        from gnnperf.graph.serialization import to_dict

        return to_dict(self)

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> ProgramGraph:
        """Raises InputError where the document is not a graph of this schema version."""
        from gnnperf.graph.serialization import from_dict

        return from_dict(document)

    def to_json(self, indent: int | None = None) -> str:
        """Deterministic: equal graphs give equal text."""
        from gnnperf.graph.serialization import to_json

        return to_json(self, indent)

    @staticmethod
    def from_json(text: str) -> ProgramGraph:
        """Raises InputError where the text is not a graph of this schema version."""
        from gnnperf.graph.serialization import from_json

        return from_json(text)

    def draw(self, path: str | Path) -> None:
        """Write a picture (.svg, .png or .pdf): loops top-down, then computations, accesses, buffers."""
        from gnnperf.graph.drawing import draw

        draw(self, Path(path))


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
