"""How a statement runs as a whole, and the innermost loops around it one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64

from gnnperf.devices import VectorUnit
from gnnperf.graph.costs.arrays import GraphArrays
from gnnperf.graph.costs.columns import decoded, node_column
from gnnperf.graph.costs.fields import INNERMOST, LEVELS, SCALARS
from gnnperf.graph.costs.statements import INTRINSIC, Statements
from gnnperf.graph.costs.tiles import Tiles, shared_work, straight_levels, trips_kept


def scalar_columns(
    s: Statements,
    graphs: GraphArrays,
    inside: Float64[np.ndarray, "s E"],
    tiles: Tiles,
    threads: int,
    unit: VectorUnit,
) -> Float64[np.ndarray, "s _"]:
    """In the order of `SCALARS`."""
    nodes = graphs.node_features[s.node]
    rows, own = np.arange(len(s.node)), s.owner
    total = inside[:, -1]
    shared = shared_work(s, inside, threads)
    target, read = s.target.astype(np.float64), (~s.target).astype(np.float64)
    element = np.maximum(1.0, s.of_access(s.element_bytes * target))
    vector = np.where(s.vectorized, s.extent, 1.0).prod(1)
    registers = np.ceil(vector * element / unit.bytes)
    body = straight_levels(s)
    instructions = inside[rows, body] / vector * registers
    flops = decoded(nodes[:, node_column("flops")])
    intrinsic = graphs.node_kind[s.node] == INTRINSIC
    body_lines = tiles.lines[np.arange(len(own)), body[own]]
    innermost = tiles.step_bytes[:, 0]
    one_by_one = (innermost > 0) & (innermost <= s.element_bytes)
    gathered = s.of_access(read * (innermost > s.element_bytes)) * total
    moves_target = s.of_access(tiles.moves * target[:, None]) > 0  # [s, D]
    values = {
        "instances": np.log2(total),
        "threads_share": np.log2(shared["speedup"]),
        "instances_of_thread": np.log2(total / shared["speedup"]),
        "flops_of_thread": np.log2(1 + total * flops / shared["speedup"]),
        "is_parallel": shared["any"],
        "parallel_trips": np.log2(shared["trips"]),
        "balance": np.log2(shared["trips"] / shared["speedup"] / np.maximum(1, shared["trips"] / threads)),
        "launches": np.log2(1 + shared["launches"]),
        "task_instances": np.log2(shared["task"]),
        "depth": s.levels,
        "is_intrinsic": intrinsic,
        "vector_extent": np.log2(vector),
        "vector_registers": np.log2(registers),
        "vector_fill": vector * element / unit.bytes / registers,
        "body_instructions": np.log2(instructions),
        "instructions_of_thread": np.log2(total / vector * registers / shared["speedup"]),
        "unrolled_extent": np.log2(inside[rows, body] / vector),
        "accumulator_lines": np.log2(1 + s.of_access(target * body_lines)),
        "body_lines": np.log2(1 + s.of_access(read * body_lines)),
        "accumulating_trips": np.log2(trips_kept(s.extent, moves_target, body)),
        "inner_reduction_trips": np.log2(trips_kept(s.extent, moves_target, np.zeros_like(body))),
        "reads": s.of_access(read),
        "target_moves": moves_target[:, 0],
        "target_unit": s.of_access(target * one_by_one),
        "target_strided": s.of_access(target * (innermost > s.element_bytes)),
        "reads_invariant": s.of_access(read * (innermost == 0)),
        "reads_unit": s.of_access(read * one_by_one),
        "reads_strided": s.of_access(read * (innermost > s.element_bytes)),
        "gathered_of_thread": np.log2(1 + gathered / shared["speedup"]),
        "share_of_flops": _share(total * flops, s.graph),
        "share_of_instances": _share(total, s.graph),
        "element_bytes": element,
        "footprint_lines": np.log2(1 + s.of_access(tiles.lines[:, -1])),
    }
    return np.stack([values[name].astype(np.float64) for name in SCALARS], 1)


def _share(values: Float64[np.ndarray, " s"], graph: np.ndarray) -> Float64[np.ndarray, " s"]:
    total = np.bincount(graph, values)[graph]
    return values / np.maximum(total, 1.0)


def level_columns(s: Statements, tiles: Tiles) -> Iterator[Float64[np.ndarray, "s _"]]:
    """The innermost loops one by one, each in the order of `LEVELS`."""
    target, read = s.target.astype(np.float64), (~s.target).astype(np.float64)
    for level in range(INNERMOST):
        if level >= s.extent.shape[1]:  # what is around all loops touches as much as they do
            absent = np.zeros((len(s.node), len(LEVELS)))
            absent[:, -1] = np.log2(1 + s.of_access(tiles.lines[:, -1]))
            yield absent
            continue
        there = level < s.levels
        moves, step = tiles.moves[:, level], tiles.step_bytes[:, level]
        lines = tiles.lines[:, level + 1]
        columns = (
            np.log2(s.extent[:, level]),
            s.vectorized[:, level],
            s.unrolled[:, level],
            s.parallel[:, level],
            there & (s.of_access(target * moves) == 0),
            there * s.of_access(read * (1 - moves)),
            there * s.of_access((step > 0) & (step <= s.element_bytes)),
            np.log2(1 + s.of_access(lines)),
        )
        yield np.stack([c.astype(np.float64) for c in columns], 1)
