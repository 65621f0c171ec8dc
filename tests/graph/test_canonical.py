"""The digest separates exactly the graphs that are not isomorphic."""

from __future__ import annotations

from itertools import combinations
from random import Random

import networkx as nx
from graph.graphs import digraph, tensorized
from hypothesis import given, settings
from hypothesis import strategies as st

from gnnperf.graph import Edge, ProgramGraph


@st.composite
def small_digraphs(draw: st.DrawFn) -> ProgramGraph:
    """Up to five nodes, self-loops included, few labels: most pairs are alike, some isomorphic."""
    size = draw(st.integers(1, 5))
    ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    edges = draw(st.dictionaries(ends, st.integers(1, 2), max_size=7))
    return digraph(size, edges, draw(st.dictionaries(st.integers(0, size - 1), st.just(7), max_size=2)))


def isomorphic(a: ProgramGraph, b: ProgramGraph) -> bool:
    """By search over all mappings (VF2)."""
    return nx.is_isomorphic(
        a.to_networkx(),
        b.to_networkx(),
        node_match=lambda x, y: x == y,
        edge_match=lambda x, y: sorted(map(str, x.values())) == sorted(map(str, y.values())),
    )


def permuted(graph: ProgramGraph, random: Random) -> ProgramGraph:
    order = random.sample(range(len(graph.nodes)), len(graph.nodes))
    edges = [Edge(order.index(e.source), order.index(e.target), e.kind, e.features) for e in graph.edges]
    return ProgramGraph(tuple(graph.nodes[i] for i in order), tuple(edges), graph.values)


@settings(max_examples=150)
@given(small_digraphs(), small_digraphs())
def test_digests_are_equal_exactly_for_isomorphic_graphs(a: ProgramGraph, b: ProgramGraph) -> None:
    assert (a.digest == b.digest) == isomorphic(a, b)


@settings(max_examples=100)
@given(st.integers(2, 5), st.randoms(use_true_random=False), st.integers(0, 10))
def test_moving_one_edge_is_seen(size: int, random: Random, count: int) -> None:
    """Pairs with equal numbers of everything, which independent draws seldom give."""
    pairs = [(s, t) for s in range(size) for t in range(size) if s != t]
    chosen = random.sample(pairs, min(count, len(pairs)))
    edges = dict.fromkeys(chosen, 1)
    if chosen:
        moved = dict.fromkeys([*chosen[1:], random.choice([p for p in pairs if p not in chosen[1:]])], 1)
        a, b = digraph(size, edges), digraph(size, moved)
        assert (a.digest == b.digest) == isomorphic(a, b)


@given(small_digraphs(), st.randoms(use_true_random=False))
def test_the_order_of_nodes_does_not_matter(graph: ProgramGraph, random: Random) -> None:
    assert permuted(graph, random).digest == graph.digest


def undirected(size: int, edges: list[tuple[int, int]]) -> ProgramGraph:
    return digraph(size, {**dict.fromkeys(edges, 1), **{(b, a): 1 for a, b in edges}})


def test_graphs_that_colour_refinement_alone_confuses() -> None:
    hexagon = undirected(6, [(i, (i + 1) % 6) for i in range(6)])
    triangles = undirected(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    assert hexagon.digest != triangles.digest
    prism = undirected(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)])
    bipartite = undirected(6, [(a, b) for a in range(3) for b in range(3, 6)])
    assert prism.digest != bipartite.digest


def test_strongly_regular_graphs() -> None:
    """The 4x4 rook's graph and the Shrikhande graph: same parameters, 2-dimensional WL cannot tell."""
    cells = [(a, b) for a in range(4) for b in range(4)]

    def joined(near: object) -> ProgramGraph:
        pairs = combinations(range(16), 2)
        return undirected(16, [(p, q) for p, q in pairs if near(cells[p], cells[q])])  # type: ignore[operator]

    def shrikhande(p: tuple[int, int], q: tuple[int, int]) -> bool:
        step = (p[0] - q[0]) % 4, (p[1] - q[1]) % 4
        return step in {(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)}

    rook = joined(lambda p, q: p[0] == q[0] or p[1] == q[1])
    other = joined(shrikhande)
    assert rook.digest != other.digest
    assert permuted(other, Random(1)).digest == other.digest


def test_a_self_loop_is_not_a_pair() -> None:
    assert digraph(2, {(0, 0): 1, (1, 1): 1}).digest != digraph(2, {(0, 1): 1, (1, 0): 1}).digest


def test_many_identical_parts_are_no_factorial() -> None:
    """Forty alike statements below one loop, twenty alike chains, two alike layers fully joined."""
    star = digraph(41, {(0, i): 1 for i in range(1, 41)})
    chains = digraph(60, {(3 * i + j, 3 * i + j + 1): 1 for i in range(20) for j in range(2)})
    layers = digraph(24, {(a, b): 1 for a in range(12) for b in range(12, 24)})
    for graph in (star, chains, layers):
        assert permuted(graph, Random(0)).digest == graph.digest


def test_parallel_edges_count() -> None:
    single = tensorized()
    strided = next(e for e in single.edges if e.kind == "indexes")
    other = Edge(strided.source, strided.target, "indexes", {**strided.features, "dimension": 1})
    twice = ProgramGraph(single.nodes, (*single.edges, other), single.values)
    assert twice.digest != single.digest


def test_labels_and_profile_are_not_part_of_the_program() -> None:
    graph = tensorized()
    profiled = ProgramGraph(graph.nodes, graph.edges, graph.values, {"runtime_s": 1e-3})
    assert profiled.digest == graph.digest
    assert ProgramGraph(graph.nodes, graph.edges, {**graph.values, "total_flops": 1}).digest != graph.digest
