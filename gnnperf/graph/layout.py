"""Where the nodes of a program graph go in a picture: loops top-down, computations, accesses, buffers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnnperf.graph.program_graph import ProgramGraph


SWEEPS = 4


def layered_layout(graph: ProgramGraph) -> dict[int, tuple[float, int]]:
    """Node -> (x in columns, row from the top).

    The widest row is laid out one node per column, ordered by where its neighbours stand; the other
    rows follow their neighbours, kept at least one column apart (the barycentre method of
    Sugiyama et al., 1981).
    """
    rows = _rows(graph)
    neighbours: defaultdict[int, set[int]] = defaultdict(set)
    for edge in graph.edges:
        if edge.kind != "flows" and not (edge.kind == "indexes" and edge["subscript"] == "invariant"):
            neighbours[edge.source].add(edge.target)
            neighbours[edge.target].add(edge.source)
    x = {node: float(i) for row in rows for i, node in enumerate(row)}

    def pull(node: int) -> float:
        near = neighbours[node]
        return sum(x[n] for n in near) / len(near) if near else x[node]

    for _ in range(SWEEPS):
        for row in (*rows, *reversed(rows)):
            x.update(_apart(sorted(row, key=lambda n: (pull(n), n)), pull))
    left = min(x.values(), default=0.0)
    return {node: (x[node] - left, depth) for depth, row in enumerate(rows) for node in row}


def _rows(graph: ProgramGraph) -> list[list[int]]:
    by_level: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    stage = {"loop": 0, "compute": 1, "intrinsic": 1, "access": 2, "buffer": 3}
    inside = _access_depths(graph)
    for i, node in enumerate(graph.nodes):
        depth = node["depth"] if node.kind == "loop" else inside.get(i, 0)
        assert isinstance(depth, int)
        by_level[stage[node.kind], depth].append(i)
    return [by_level[level] for level in sorted(by_level)]


def _access_depths(graph: ProgramGraph) -> Mapping[int, int]:
    """Accesses that feed the subscript of another one stand one row below it."""
    feeds = [(e.source, e.target) for e in graph.edges if e.kind == "reads" and e["role"] == "subscript"]
    depths: dict[int, int] = {}
    for _ in feeds:
        for source, target in feeds:
            depths[source] = max(depths.get(source, 0), min(depths.get(target, 0) + 1, len(feeds)))
    return depths


def _apart(row: Sequence[int], wanted: Callable[[int], float]) -> dict[int, float]:
    """Positions near the wanted ones, in order, at least 1 apart; shifted so that none is favoured."""
    targets = [wanted(n) for n in row]
    placed: list[float] = []
    for target in targets:
        placed.append(max(target, placed[-1] + 1) if placed else target)
    shift = sum(p - t for p, t in zip(placed, targets, strict=True)) / len(row)
    return {n: p - shift for n, p in zip(row, placed, strict=True)}
