"""Small hand-made program graphs."""

from __future__ import annotations

from gnnperf.graph import Edge, GraphBuilder, Node, ProgramGraph


def digraph(
    size: int, edges: dict[tuple[int, int], int], kinds: dict[int, int] | None = None
) -> ProgramGraph:
    """Bare loops joined by `contains` edges with a number: any labelled directed graph.

    `kinds`: node -> extent, where nodes are to differ.
    """
    nodes = [Node("loop", {"loop_kind": "spatial", "extent": (kinds or {}).get(i, 0)}) for i in range(size)]
    joined = [Edge(s, t, "contains", {"nesting_depth": label}) for (s, t), label in edges.items()]
    return ProgramGraph(tuple(nodes), tuple(joined), {})


def tensorized() -> ProgramGraph:
    """A product on a tensor core: has the kinds of nodes and edges that plain nests do not."""
    g = GraphBuilder()
    loops = {name: g.node("loop", name, loop_kind="spatial", extent=extent) for name, extent in
             {"i": 64, "j": 64, "k": 32}.items()}  # fmt: skip
    for outer, inner, depth in (("i", "j", 1), ("j", "k", 2)):
        g.edge(loops[outer], loops[inner], "contains", nesting_depth=depth)
    mma = g.node(
        "intrinsic", "mma", dtype="float16", accumulator_dtype="float32",
        m_extent=16, n_extent=8, k_extent=16, flops=4096, flops_per_cycle=1024, instances=4096,
    )  # fmt: skip
    g.edge(loops["k"], mma, "contains", nesting_depth=3)
    for axis, (name, tile) in {"m": ("i", 16), "n": ("j", 8), "k": ("k", 16)}.items():
        g.edge(loops[name], mma, "assigns", axis=axis, tile_extent=tile)
    shared = g.node("buffer", "A", dtype="float16", element_bytes=2, rank=2, size_bytes=4096, scope="shared")
    read = g.node(
        "access", "A[i, k]", access_kind="read", element_bytes=2, footprint_bytes=4096, touches=4096
    )
    g.edge(shared, read, "reads", role="memory")
    g.edge(read, mma, "reads", role="value")
    for axis, stride in (("i", 32), ("k", 1)):
        g.edge(
            loops[axis], read, "indexes", subscript="affine", stride_elements=stride, stride_bytes=2 * stride
        )
    return g.build({"total_flops": 4096 * 4096})
