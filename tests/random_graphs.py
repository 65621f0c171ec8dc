"""Random program graphs: any kinds, fields and values that the registry allows, however senseless."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gnnperf.graph import NODE_KINDS, Edge, Node, ProgramGraph
from gnnperf.graph.fields import Field, Level, fields_of
from gnnperf.graph.vocabulary import ENDPOINTS

NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**62), 2**62),
    st.floats(-1e30, 1e30, allow_nan=False),
)
PROFILE = st.fixed_dictionaries({}, optional={"runtime_s": st.floats(1e-9, 1e3), "flops_share": st.just(0.5)})


def value(field: Field) -> st.SearchStrategy[Any]:
    if field.type == "number":
        return NUMBERS
    if field.type == "flag":
        return st.booleans()
    words = st.sampled_from([*field.choices])
    if field.type == "category":
        return words
    return st.dictionaries(words, st.integers(-3, 10**6), max_size=6)


def features(level: Level, kind: str = "") -> st.SearchStrategy[dict[str, Any]]:
    known = fields_of(level, kind)
    required = {name: value(field) for name, field in known.items() if field.default is None}
    optional = {name: value(field) for name, field in known.items() if field.default is not None}
    return st.fixed_dictionaries(required, optional=optional)


NODE_FEATURES = {kind: features("node", kind) for kind in NODE_KINDS}
EDGE_FEATURES = {kind: features("edge", kind) for kind in ENDPOINTS}


@st.composite
def program_graphs(draw: st.DrawFn, most_nodes: int = 12, most_edges: int = 20) -> ProgramGraph:
    kinds = draw(st.lists(st.sampled_from(NODE_KINDS), min_size=1, max_size=most_nodes))
    nodes = tuple(Node(kind, draw(NODE_FEATURES[kind])) for kind in kinds)
    fitting = [
        (s, t, relation)
        for relation, pairs in ENDPOINTS.items()
        for s, source in enumerate(kinds)
        for t, target in enumerate(kinds)
        if (source, target) in pairs
    ]
    chosen = draw(st.lists(st.sampled_from(fitting), max_size=most_edges)) if fitting else []
    edges = tuple(Edge(s, t, relation, draw(EDGE_FEATURES[relation])) for s, t, relation in chosen)
    return ProgramGraph(nodes, edges, draw(features("graph")), draw(st.none() | PROFILE))
