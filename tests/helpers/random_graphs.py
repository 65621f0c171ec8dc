"""Random program graphs: any kinds, fields and values that the registry allows, however senseless."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from gnnperf.graph import NODE_KINDS, Edge, Node, ProgramGraph
from gnnperf.graph.fields import Field, Level, fields_of
from gnnperf.graph.vocabulary import ENDPOINTS


def random_graph(chance: random.Random, most_nodes: int = 12, most_edges: int = 20) -> ProgramGraph:
    """At least one node; edges only where the kinds allow one."""
    kinds = [chance.choice(NODE_KINDS) for _ in range(chance.randint(1, most_nodes))]
    nodes = tuple(Node(kind, _features(chance, "node", kind)) for kind in kinds)
    fitting = [
        (s, t, relation)
        for relation, pairs in ENDPOINTS.items()
        for s, source in enumerate(kinds)
        for t, target in enumerate(kinds)
        if (source, target) in pairs
    ]
    chosen = chance.choices(fitting, k=chance.randint(0, most_edges)) if fitting else []
    edges = tuple(Edge(s, t, relation, _features(chance, "edge", relation)) for s, t, relation in chosen)
    profile = {"runtime_s": 10 ** chance.uniform(-9, 2)} if chance.random() < 0.5 else None
    return ProgramGraph(nodes, edges, _features(chance, "graph", ""), profile)


def program_graphs() -> st.SearchStrategy[ProgramGraph]:
    """The same as a strategy."""
    return st.integers(0, 2**64).map(lambda seed: random_graph(random.Random(seed)))


def _features(chance: random.Random, level: Level, kind: str) -> dict[str, Any]:
    fields = fields_of(level, kind)
    return {
        name: _value(chance, field)
        for name, field in fields.items()
        if field.default is None or chance.random() < 0.6
    }


def _value(chance: random.Random, field: Field) -> Any:
    if field.type == "number":
        small, large = chance.randint(-5, 5), chance.randint(-(2**62), 2**62)
        return chance.choice((small, large, chance.uniform(-1, 1) * 10 ** chance.uniform(-9, 30)))
    if field.type == "flag":
        return chance.random() < 0.5
    words = [*field.choices]
    if field.type == "category":
        return chance.choice(words)
    return {word: chance.randint(-3, 10**6) for word in chance.sample(words, chance.randint(0, 6))}
