"""The statements of a program graph, with the roles that their loops play (see `recipe.py`).

What `roles.py` finds in a nest, `statements` finds in its graph, as far as a graph tells: where only the
graph is known, as in a corpus, or where thousands of schedules are judged, none of which is applied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod
from typing import cast

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph import Node, ProgramGraph
from gnnperf.schedules.recipes.recipe import ROLES
from gnnperf.schedules.recipes.roles import LANES


@dataclass(frozen=True)
class StatementAccess:
    """One access of a statement. strides: in elements, per role; 0 where it is invariant, inf where a
    subscript is not affine; of several loops with one role, the shortest that is not 0."""

    element_bytes: float
    strides: Mapping[str, float]
    is_indirect: bool


@dataclass(frozen=True)
class ScheduledStatement:
    """One computation and the loops around it.

    extents: role -> iterations of its loops, for roles that it has. sequential_iterations: of the loops
    that are no one's role. accesses: those of memory. operations: per instance, by name.
    """

    extents: Mapping[str, float]
    sequential_iterations: float
    accesses: Sequence[StatementAccess]
    instances: float
    flops: float
    operations: Mapping[str, int]
    is_reduction: bool
    varying_loops: int
    """Loops whose bounds depend on others."""
    data_dependent_loops: int
    vector_bytes: int
    """Width of a vector register."""

    @property
    def cost(self) -> float:
        """Operations and accesses of all instances: what statements are weighed by."""
        return self.instances * (max(1.0, self.flops) + len(self.accesses))

    @property
    def lanes(self) -> float:
        """Elements in a vector."""
        return self.vector_bytes / max((a.element_bytes for a in self.accesses), default=8.0)

    def extent(self, role: str) -> float:
        return self.extents.get(role, 1.0)

    def unit(self, role: str) -> int:
        """Accesses that are contiguous along a role."""
        return sum(abs(a.strides[role]) == 1 for a in self.accesses)

    def scattered(self, role: str) -> int:
        return _scattered(self.accesses, role)

    def invariant(self, role: str) -> int:
        return sum(a.strides[role] == 0 for a in self.accesses)

    @cached_property
    def contiguous(self) -> str:
        """The role, p or r, that vectors run along where a recipe leaves it open."""
        if "r" not in self.extents:
            return "p"
        if "p" not in self.extents:
            return "r"
        inside = [a for a in self.accesses if a.strides["R"] or a.strides["r"]]
        longer = self.extents["r"] >= LANES
        return "r" if longer and _scattered(inside, "r") < _scattered(inside, "p") else "p"

    @cached_property
    def is_contraction(self) -> bool:
        """A reduction with reuse along a spatial loop."""
        spatial = [role for role in "qp" if role in self.extents]
        return "r" in self.extents and any(
            a.strides["r"] and any(not a.strides[role] for role in spatial) for a in self.accesses
        )


def statements(graph: ProgramGraph, vectors: VectorUnit = AVX512) -> list[ScheduledStatement]:
    """The statements of an unscheduled nest, the costliest first. vectors: of the machine."""
    parents: dict[int, int] = {}
    accesses: dict[int, list[int]] = defaultdict(list)
    buffers: dict[int, Node] = {}
    strides: dict[tuple[int, int], float] = {}
    for edge in graph.edges:
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        if edge.kind == "contains":
            parents[edge.target] = edge.source
        elif edge.kind == "indexes" and edge["subscript"] != "invariant":
            affine = edge["subscript"] == "affine"
            strides[edge.target, edge.source] = cast(float, edge["stride_elements"]) if affine else inf
        elif (source.kind, target.kind) == ("access", "compute"):
            accesses[edge.target].append(edge.source)
        elif (source.kind, target.kind) == ("compute", "access"):
            accesses[edge.source].append(edge.target)
        elif source.kind == "buffer":
            buffers[edge.target] = source
        elif target.kind == "buffer":
            buffers[edge.source] = target
    found = []
    for position, node in enumerate(graph.nodes):
        if node.kind == "compute":
            loops = _enclosing(position, parents)
            seen = [a for a in accesses[position] if a not in buffers or buffers[a]["scope"] != "local"]
            found.append(_statement(graph, node, loops, seen, strides, vectors))
    return sorted(found, key=lambda s: -s.cost)


def _enclosing(position: int, parents: Mapping[int, int]) -> list[int]:
    """Loops around a node, outermost first."""
    loops: list[int] = []
    while position in parents:
        position = parents[position]
        loops.insert(0, position)
    return loops


def _statement(
    graph: ProgramGraph,
    node: Node,
    loops: Sequence[int],
    accesses: Sequence[int],
    strides: Mapping[tuple[int, int], float],
    vectors: VectorUnit,
) -> ScheduledStatement:
    nodes = graph.nodes
    kinds = [nodes[loop]["loop_kind"] for loop in loops]
    written = [a for a in accesses if nodes[a]["access_kind"] != "read"]
    roles = _roles(node, loops, kinds, accesses, written, strides)

    def extent(chosen: Iterable[int]) -> float:
        return prod(max(1.0, cast(float, nodes[loop]["extent"])) for loop in chosen)

    def shortest(access: int, role: str) -> float:
        steps = (strides.get((access, loop), 0.0) for loop in roles[role])
        return min((s for s in steps if s), key=abs, default=0.0)

    return ScheduledStatement(
        extents={role: extent(chosen) for role, chosen in roles.items() if chosen},
        sequential_iterations=extent(lp for lp in loops if nodes[lp]["loop_kind"] == "sequential"),
        accesses=[
            StatementAccess(
                cast(float, nodes[a]["element_bytes"]),
                {role: shortest(a, role) for role in ROLES},
                bool(nodes[a]["indirect"]),
            )
            for a in accesses
        ],
        instances=max(1.0, cast(float, node["instances"])),
        flops=cast(float, node["flops"]),
        operations=cast(Mapping[str, int], node["operations"]),
        is_reduction=node["reduction"] != "none",
        varying_loops=sum(bool(nodes[loop]["extent_varies"]) for loop in loops),
        data_dependent_loops=kinds.count("data-dependent"),
        vector_bytes=vectors.bytes,
    )


def _roles(
    node: Node,
    loops: Sequence[int],
    kinds: Sequence[object],
    accesses: Sequence[int],
    written: Sequence[int],
    strides: Mapping[tuple[int, int], float],
) -> dict[str, list[int]]:
    """Role -> loops, by the rules of `assign_roles`."""
    kind = dict(zip(loops, kinds, strict=True))
    position = {loop: at for at, loop in enumerate(loops)}
    reductions: list[int] = []
    if node["reduction"] != "none":
        reductions = [lp for lp in loops if kind[lp] == "reduction"]
        reductions = reductions or [lp for lp in loops if kind[lp] == "data-dependent"]
    spatial = [lp for lp in loops if kind[lp] != "sequential" and lp not in reductions]

    def unit(loop: int) -> float:
        return sum(1.0 + 0.5 * (a in written) for a in accesses if strides.get((a, loop)) == 1)

    def reused(loop: int) -> int:
        return sum((a, loop) not in strides for a in accesses)

    def reused_vectors(loop: int) -> int:
        return sum((a, p) in strides and (a, loop) not in strides for p in roles["p"] for a in accesses)

    roles: dict[str, list[int]] = {role: [] for role in ROLES}
    if vectorisable := [lp for lp in spatial if kind[lp] == "spatial"]:
        roles["p"] = [max(vectorisable, key=lambda lp: (unit(lp), position[lp]))]
    if rest := [lp for lp in spatial if lp not in roles["p"]]:
        by_reuse = (lambda lp: (reused_vectors(lp), reused(lp), position[lp])) if reductions else position.get
        roles["q"] = [max(rest, key=by_reuse)]  # type: ignore[arg-type]
        roles["P"] = [lp for lp in rest if lp not in roles["q"]]
    if reductions:
        roles["r"] = [max(reductions, key=lambda lp: (kind[lp] == "data-dependent", unit(lp), position[lp]))]
        roles["R"] = [lp for lp in reductions if lp not in roles["r"]]
    return roles


def _scattered(accesses: Iterable[StatementAccess], role: str) -> int:
    return sum(abs(a.strides[role]) not in (0, 1) for a in accesses)
