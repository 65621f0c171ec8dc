"""What a schedule costs, against cases worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np
import pytest
from graph.graphs import tensorized
from helpers.made_up_products import product
from nests.examples import EXAMPLES

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph import ProgramGraph, collate, encode
from gnnperf.graph.costs import (
    ACCESS_COSTS,
    COST_FIELDS,
    LOOP_COSTS,
    STATEMENT_COSTS,
    CostField,
    GraphArrays,
    GraphCosts,
)
from gnnperf.nests import nest_graph


def costs_of(*graphs: ProgramGraph, vectors: VectorUnit = AVX512) -> GraphCosts:
    return GraphCosts(GraphArrays.of([encode(graph) for graph in graphs]), 2, vectors)


def by_name(fields: Sequence[CostField], row: np.ndarray) -> dict[str, float]:
    return dict(zip((f.name for f in fields), row.tolist(), strict=True))


def numbers(graph: ProgramGraph, vectors: VectorUnit = AVX512) -> dict[str, float]:
    """Of the one statement of a graph, by name."""
    (row,) = costs_of(graph, vectors=vectors).statement_rows
    return by_name(STATEMENT_COSTS, row)


def check(found: dict[str, float], **expected: float) -> None:
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-3), name


def test_a_tiled_product_by_hand() -> None:
    """8 tasks of 8 rows, 64 deep, 64 columns in vectors: 4 registers of 16 floats."""
    found = numbers(product(8, 8, 64, 64))
    check(
        found,
        instances=18, threads_share=1, parallel_trips=3, balance=0, launches=log2(2), task_instances=15,
        vector_extent=6, vector_registers=2, vector_fill=1, lanes=6, auto_vectorized=0,
    )  # fmt: skip
    # A row of C stays in 4 registers for 64 steps, each of which loads 4 vectors of B and 1 element of A.
    check(
        found,
        straight_accumulators=log2(1 + 4), straight_loads=log2(1 + 4 + 1), straight_trips=6,
        straight_loads_of_thread=log2(2**18 / 2**6 / 2 * (5 + 2 * 4 / 64)), straight_spilled=0,
        accumulates_0=0, accumulates_1=1, reused_1=0, reused_2=1, unit_0=2,
    )  # fmt: skip


def test_traffic_by_hand() -> None:
    """Lines of C, B and A inside of j: 4, 4, 1; of k: 4, 256, 4; of i: 32, 256, 32. The first fits into
    2 KiB and C stays while k runs; the last fits into 32 KiB and B stays from task to task."""
    found = numbers(product(8, 8, 64, 64))
    times = 8 * 8 * 64
    check(
        found,
        traffic_2k=log2(64 * (4 * times / 64 + 4 * times + 1 * times) / 2),
        traffic_32k=log2(64 * (32 * 8 + 256 + 32 * 8) / 2),
        footprint_lines=log2(1 + 3 * 256),
    )


def test_tasks_that_threads_cannot_share_evenly() -> None:
    """3 tasks on 2 threads: one runs 2 of them, so the work takes 2 / 1.5 as long as it might."""
    check(numbers(product(3, 8, 16, 16)), threads_share=log2(1.5), balance=log2(2 / 1.5))


def test_what_the_compiler_vectorizes_by_itself() -> None:
    unit = numbers(product(8, 8, 64, 32, vectorized=False))
    check(unit, auto_vectorized=1, lanes=5, vector_extent=0)
    reduction = numbers(product(8, 8, 64, 32, vectorized=False, order="tijk"))
    check(reduction, auto_vectorized=0, lanes=0, inner_reduction_trips=6)


def test_strided_loads_are_gathers() -> None:
    check(numbers(product(8, 8, 64, 32)), straight_gathers_of_thread=0, reads_strided=0)
    check(
        numbers(product(8, 8, 64, 32, transposed=True)),
        reads_strided=1, straight_gathers_of_thread=log2(1 + 8 * 8 * 64 * 32 / 2),
    )  # fmt: skip


def test_unrolled_loops_are_straight_code() -> None:
    """8 rows of 32 columns, unrolled: 16 accumulators, and 2 vectors of B serve all 8 rows."""
    found = numbers(product(8, 8, 64, 32, order="tkij", unrolled=True))
    check(
        found, straight_accumulators=log2(1 + 16), straight_loads=log2(1 + 2 + 8), body_instructions=4,
        straight_trips=6,
    )  # fmt: skip


def test_narrower_registers_by_hand() -> None:
    """The same 8 rows in the 16 registers of 8 floats that AVX2 has: half of 32 accumulators are spilled."""
    graph = product(8, 8, 64, 32, order="tkij", unrolled=True)
    check(numbers(graph), straight_accumulators=log2(1 + 16), straight_spilled=0, vector_registers=1)
    check(
        numbers(graph, VectorUnit(32, 16)),
        straight_accumulators=log2(1 + 32), straight_loads=log2(1 + 4 + 8), straight_spilled=1,
        vector_registers=2, vector_fill=1, body_instructions=5,
    )  # fmt: skip


def test_graphs_side_by_side_are_the_graphs() -> None:
    graphs = [product(2**n, 8, 16, 16, order=o) for n, o in enumerate(("tikj", "tkij", "tijk"))]
    together = costs_of(*graphs)
    assert together.graphs.graph[together.statement_nodes].tolist() == [0, 1, 2]
    alone = np.concatenate([costs_of(graph).node_rows() for graph in graphs])
    assert together.node_rows() == pytest.approx(alone, abs=1e-5)


def test_a_batch_of_tensors_has_the_same_costs() -> None:
    graphs = [product(4, 8, 16, 16), tensorized()]
    batch = GraphArrays.of_batch(collate([encode(graph) for graph in graphs]))
    assert (GraphCosts(batch, 2).node_rows() == costs_of(*graphs).node_rows()).all()


def test_vectors_that_fill_no_power_of_two_of_registers_are_awkward() -> None:
    """24 floats are one and a half registers, and a row of C stays in them for 64 steps; 14 fit into one."""
    check(
        numbers(product(8, 8, 64, 24)),
        lanes_awkward=1, lanes_padded=log2(32 / 24), awkward_accumulators=6,
    )  # fmt: skip
    check(numbers(product(8, 8, 64, 14)), lanes_awkward=0, lanes_padded=log2(16 / 14))
    check(numbers(product(8, 8, 64, 64)), lanes_awkward=0, lanes_padded=0, awkward_accumulators=0)
    check(numbers(product(8, 8, 64, 24, vectorized=False)), lanes_awkward=0)


def test_loops_by_hand() -> None:
    """Per iteration of k: 256 bytes of C and of B, a line of A; a run of k: the same of C, 64 rows of B and 4
    lines of A. Of t: 8 rows of A and C, all of B."""
    graph = product(8, 8, 64, 64)
    costs = costs_of(graph)
    rows = dict(zip((graph.nodes[n].label for n in costs.loop_nodes), costs.loop_rows, strict=True))
    k, t = by_name(LOOP_COSTS, rows["k"]), by_name(LOOP_COSTS, rows["t"])
    check(k, iteration_bytes=log2(1 + 576), run_bytes=log2(1 + 256 + 64 * 256 + 256))
    check(k, iteration_flops=log2(1 + 2 * 64))
    check(t, iteration_bytes=log2(1 + 2 * 8 * 256 + 64 * 256), run_bytes=log2(1 + 3 * 64 * 256))


def test_a_buffer_counts_once_in_a_loop() -> None:
    """The neighbours of a stencil lie in the lines of its centre."""
    graph = nest_graph(EXAMPLES["stencil1d"]())
    costs = costs_of(graph)
    size = {n["size_bytes"] for n in graph.nodes if n.kind == "buffer"}.pop()
    assert isinstance(size, int)
    assert len(costs.access_nodes) > 2
    found = np.exp2(costs.loop_rows[-1][1]) - 1
    assert found <= 2 * (size + 64)


def test_accesses_by_hand() -> None:
    graph = product(8, 8, 64, 64)
    costs = costs_of(graph)
    rows = {
        graph.nodes[n].label[0]: by_name(ACCESS_COSTS, row)
        for n, row in zip(costs.access_nodes, costs.access_rows, strict=True)
    }
    check(rows["B"], tile_bytes_0=log2(1 + 256), tile_bytes_1=log2(1 + 64 * 256), lane_bytes=log2(5))
    check(rows["A"], tile_bytes_0=log2(1 + 64), tile_bytes_1=log2(1 + 256), lane_bytes=0, register_vectors=1)
    check(rows["B"], register_vectors=log2(1 + 4), whole_bytes=log2(1 + 64 * 256), tile_bytes_4=14)
    check(rows["B"], fetched_2k=log2(1 + 64 * 4 * 8 * 8 * 64), fetched_32k=log2(1 + 64 * 256))


def test_the_registry() -> None:
    names = [(field.name, kind) for field in COST_FIELDS for kind in field.kinds]
    assert len(set(names)) == len(names)
    assert all(field.meaning for field in COST_FIELDS)
    costs = costs_of(product(8, 8, 64, 64))
    assert costs.node_rows().shape == (len(costs.graphs.node_kind), len(COST_FIELDS))
