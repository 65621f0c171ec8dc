"""Assembling a program graph node by node; what frontends use."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.graph.fields import Value
from gnnperf.graph.program_graph import Edge, Node, ProgramGraph

LABEL_LENGTH = 60


class GraphBuilder:
    """Nodes and edges so far. Fields may be added to a node until `build`; repeated edges count once."""

    def __init__(self) -> None:
        self._nodes: list[tuple[str, dict[str, Value], str]] = []
        self._edges: dict[tuple[int, int, str], list[dict[str, Value]]] = {}

    def node(self, kind: str, label: str, **features: Value) -> int:
        """Add a node and return its number. Long labels are cut."""
        short = label if len(label) <= LABEL_LENGTH else f"{label[: LABEL_LENGTH - 3]}..."
        self._nodes.append((kind, features, short))
        return len(self._nodes) - 1

    def fields(self, node: int) -> dict[str, Value]:
        """The fields of a node, to read or to complete."""
        return self._nodes[node][1]

    def edge(self, source: int, target: int, kind: str, **features: Value) -> None:
        alike = self._edges.setdefault((source, target, kind), [])
        if features not in alike:
            alike.append(features)

    def build(self, values: Mapping[str, Value]) -> ProgramGraph:
        """The checked graph. Raises InputError for what the registry does not know."""
        nodes = tuple(Node(kind, features, label) for kind, features, label in self._nodes)
        edges = tuple(Edge(*ends, features) for ends, alike in self._edges.items() for features in alike)
        return ProgramGraph(nodes, edges, values)
