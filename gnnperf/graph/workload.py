"""What a program asks of a GPU, in the few numbers that physics needs; read from its graph."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from gnnperf.graph.program_graph import ProgramGraph

Kind = Literal["contraction", "rows", "map"]


@dataclass(frozen=True)
class Workload:
    """A kernel, as far as its runtime on a GPU is predicted from it.

    kind: "contraction" is `batch` products [m, k] x [k, n] (convolutions are such products too), "rows"
    reduces `rows` rows of `columns` elements, going over each `passes` times; "map" does neither.
    transposed: the reduction runs along the rows of the second operand in memory.
    flops: arithmetic operations. read_bytes, written_bytes: distinct bytes of memory.
    family: operators that one library implements alike; "" of a program of unknown origin.
    dtype: what it computes in, one of PRECISIONS; how much that stores is in the bytes.
    """

    kind: Kind
    flops: float
    read_bytes: float
    written_bytes: float
    batch: float = 1.0
    m: float = 1.0
    n: float = 1.0
    k: float = 1.0
    transposed: bool = False
    rows: float = 1.0
    columns: float = 1.0
    passes: float = 1.0
    family: str = ""
    dtype: str = "fp32"


def workload_of(graph: ProgramGraph, family: str = "", dtype: str = "fp32") -> Workload:
    """Read the workload of a program graph of any frontend; time grows with the number of its edges."""
    view = _View(graph)
    computes = [i for i, node in enumerate(graph.nodes) if node.kind == "compute"]
    reductions = [i for i in computes if graph.nodes[i]["reduction"] != "none"]
    base = Workload(
        "map",
        flops=graph.number("total_flops"),
        read_bytes=view.traffic("read"),
        written_bytes=view.traffic("write", "reduction"),
        family=family,
        dtype=dtype,
    )
    for compute in reductions:
        if (product := view.product(compute)) is not None:
            batch, m, n, k, transposed = product
            return replace(base, kind="contraction", batch=batch, m=m, n=n, k=k, transposed=transposed)
    if reductions:
        around = [view.around[i] for i in reductions]
        columns = max(view.extent(loop for loop in loops if view.reduces(loop)) for loops in around)
        rows = max(view.extent(loop for loop in loops if not view.reduces(loop)) for loops in around)
        return replace(base, kind="rows", rows=rows, columns=columns, passes=float(view.passes()))
    instances = (graph.nodes[i].number("instances") for i in computes)
    return replace(base, rows=max(instances, default=1.0))


@dataclass
class _View:
    """The relations of a graph that the numbers are read from."""

    graph: ProgramGraph
    around: dict[int, list[int]] = field(default_factory=dict)
    moved_by: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    unit_stride: set[tuple[int, int]] = field(default_factory=set)
    inputs: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    buffer_of: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parent: dict[int, int] = {}
        nodes = self.graph.nodes
        for edge in self.graph.edges:
            source, target = edge.source, edge.target
            if edge.kind == "contains":
                parent[target] = source
            elif edge.kind == "indexes" and edge["subscript"] != "invariant":
                self.moved_by[target].add(source)
                if edge["stride_elements"] == 1:
                    self.unit_stride.add((source, target))
            elif edge.kind == "reads" and nodes[source].kind == "access":
                self.inputs[target].append(source)
            elif edge.kind == "reads":
                self.buffer_of[target] = source
            elif edge.kind == "writes" and nodes[target].kind == "buffer":
                self.buffer_of[source] = target
        for index in range(len(nodes)):
            chain, at = [], index
            while at in parent:
                at = parent[at]
                chain.append(at)
            self.around[index] = chain

    def reduces(self, loop: int) -> bool:
        return self.graph.nodes[loop]["loop_kind"] == "reduction"

    def extent(self, loops: Iterable[int]) -> float:
        """Product of extents; of an unknown one, 1."""
        return math.prod(self.graph.nodes[i].number("extent") or 1.0 for i in loops)

    def traffic(self, *kinds: str) -> float:
        """Distinct bytes of memory that accesses of these kinds touch; equal ones of a buffer count once."""
        bytes_of: dict[int, float] = {}
        for access, buffer in self.buffer_of.items():
            node = self.graph.nodes[access]
            if node["access_kind"] in kinds and self.graph.nodes[buffer]["scope"] == "global":
                bytes_of[buffer] = max(bytes_of.get(buffer, 0.0), node.number("footprint_bytes"))
        return sum(bytes_of.values())

    def product(self, compute: int) -> tuple[float, float, float, float, bool] | None:
        """(batch, m, n, k, transposed) where a reduction multiplies two operands with reuse of both."""
        node = self.graph.nodes[compute]
        operations = node["operations"]
        operands = [a for a in self.inputs[compute] if self.graph.nodes[a].kind == "access"]
        multiplies = isinstance(operations, Mapping) and "mul" in operations
        if node["reduction"] != "add" or not multiplies or len(operands) != 2:
            return None
        first, second = (self.moved_by[a] for a in operands)
        spatial = [loop for loop in self.around[compute] if not self.reduces(loop)]
        m = [loop for loop in spatial if loop in first and loop not in second]
        n = [loop for loop in spatial if loop in second and loop not in first]
        k = [loop for loop in self.around[compute] if self.reduces(loop) and loop in first | second]
        if not m or not n or not k:
            return None
        batch = [loop for loop in spatial if loop in first and loop in second]
        along = {operand: any((loop, operand) in self.unit_stride for loop in k) for operand in operands}
        transposed = all(along.values())
        return self.extent(batch), self.extent(m), self.extent(n), self.extent(k), transposed

    def passes(self) -> int:
        """How often the largest input is gone over: loops that step through it on their own."""
        reads = [a for a in self.buffer_of if self.graph.nodes[a]["access_kind"] == "read"]
        largest = max((self.graph.nodes[a].number("footprint_bytes") for a in reads), default=0.0)
        steps = {
            max(self.moved_by[a], key=lambda loop: self.graph.nodes[loop].number("depth"))
            for a in reads
            if self.graph.nodes[a].number("footprint_bytes") == largest and self.moved_by[a]
        }
        return max(1, len(steps))
