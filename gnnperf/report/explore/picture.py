"""A program graph as rows of text that the page draws: loops, statements, and how accesses move.

The picture of `ProgramGraph.draw` needs more room than a card beside the pointer has, and 20,000 of them
more than a page may have. This one is as wide as a column and says the same of loops and accesses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gnnperf.graph import Edge, Node, ProgramGraph
from gnnperf.graph.captions import title

Row: TypeAlias = tuple[object, ...]

LOOP, STATEMENT, ACCESS = 0, 1, 2
CONTIGUOUS, STRIDED, REUSED, INDIRECT = "c", "s", "r", "i"


@dataclass(frozen=True, slots=True)
class Picture:
    """A nest for the eye.

    Attributes:
        rows: in program order. A loop is (LOOP, depth, iterator, mean extent or None, whether the extent
            varies, loop kind, annotation), a statement (STATEMENT, depth, text), an access (ACCESS, depth,
            text, access kind, moves, footprint in bytes). Depth is the number of loops around; `moves` has a
            letter for each of them, outermost first: what the access does from one iteration to the next.
        sizes: mean extents around the deepest statement, such as "512×512×~13.3".
        dtype: of what the statement with the most work computes.
        work: FLOP, bytes and parallelism in words.
    """

    rows: tuple[Row, ...]
    sizes: str
    dtype: str
    work: str


def picture(graph: ProgramGraph) -> Picture:
    """The picture of a nest, scheduled or not."""
    return _Walk(graph).picture()


class _Walk:
    """Goes through the loop tree in program order, which is the order of the nodes."""

    def __init__(self, graph: ProgramGraph) -> None:
        self.graph = graph
        self.children: defaultdict[int, list[int]] = defaultdict(list)
        self.read_by: defaultdict[int, list[int]] = defaultdict(list)
        self.written_by: defaultdict[int, list[int]] = defaultdict(list)
        self.indexes: defaultdict[tuple[int, int], list[Edge]] = defaultdict(list)
        for edge in graph.edges:
            if edge.kind == "contains":
                self.children[edge.source].append(edge.target)
            elif edge.kind == "indexes":
                self.indexes[edge.source, edge.target].append(edge)
            elif edge.kind == "reads" and graph.nodes[edge.source].kind == "access":
                self.read_by[edge.target].append(edge.source)
            elif edge.kind == "writes" and graph.nodes[edge.target].kind == "access":
                self.written_by[edge.source].append(edge.target)

    def picture(self) -> Picture:
        contained = {child for children in self.children.values() for child in children}
        tops = [
            i
            for i, node in enumerate(self.graph.nodes)
            if node.kind in ("loop", "compute", "intrinsic") and i not in contained
        ]
        rows = tuple(row for top in tops for row in self.visit(top, ()))
        return Picture(rows, self.sizes(tops), self.dtype(), title(self.graph))

    def visit(self, index: int, around: tuple[int, ...]) -> Iterator[Row]:
        node = self.graph.nodes[index]
        if node.kind == "loop":
            yield from self.accesses(self.read_by[index], around)  # of its bounds
            extent = None if node["extent_unknown"] else node["extent"]
            varies, kind = int(bool(node["extent_varies"])), node["loop_kind"]
            annotation = "" if node["annotation"] == "none" else node["annotation"]
            yield LOOP, len(around), node.label or "loop", extent, varies, kind, annotation
            for child in self.children[index]:
                yield from self.visit(child, (*around, index))
        else:
            yield STATEMENT, len(around), node.label or node.kind
            yield from self.accesses(self.read_by[index], around)
            yield from self.accesses(self.written_by[index], around)

    def accesses(self, found: Sequence[int], around: tuple[int, ...]) -> Iterator[Row]:
        """Each with the accesses that its subscripts load below it."""
        for index in dict.fromkeys(found):
            node = self.graph.nodes[index]
            moves = "".join(_move(self.indexes[loop, index]) for loop in around)
            kind, footprint = node["access_kind"], node["footprint_bytes"]
            yield ACCESS, len(around), node.label or "access", kind, moves, footprint
            yield from self.accesses(self.read_by[index], around)

    def sizes(self, tops: Sequence[int]) -> str:
        """Of the deepest nesting; of equally deep ones, the first."""
        nodes = self.graph.nodes

        def deepest(found: Sequence[int]) -> list[str]:
            """Extents of the longest chain of loops that starts with one of these nodes."""
            loops = [index for index in found if nodes[index].kind == "loop"]
            chains = [[_extent(nodes[index]), *deepest(self.children[index])] for index in loops]
            return max(chains, key=len, default=[])

        return "×".join(deepest(tops))

    def dtype(self) -> str:
        computing = [node for node in self.graph.nodes if node.kind in ("compute", "intrinsic")]

        def work(position: int) -> float:
            return computing[position].number("flops") * computing[position].number("instances")

        most = max(range(len(computing)), key=work, default=None)
        return "" if most is None else str(computing[most]["dtype"])


def _move(edges: Sequence[Edge]) -> str:
    """What an access does along one loop, from the edges of its dimensions."""
    kinds = {edge["subscript"] for edge in edges}
    if kinds & {"nonaffine", "indirect"}:
        return INDIRECT
    stride = sum(edge.number("stride_elements") for edge in edges if edge["subscript"] == "affine")
    if stride == 0:
        return REUSED
    return CONTIGUOUS if abs(stride) == 1 else STRIDED


def _extent(loop: Node) -> str:
    if loop["extent_unknown"]:
        return "?"
    extent = loop.number("extent")
    about = "~" if loop["extent_varies"] or not extent.is_integer() else ""
    return f"{about}{extent:.0f}" if extent >= 100 or extent.is_integer() else f"{about}{extent:.3g}"
