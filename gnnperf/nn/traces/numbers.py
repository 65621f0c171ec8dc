"""What a schedule costs a processor, statement by statement, as numbers computed from the scheduled graph.

Trips and their balance over the threads, vectors and the strides under them, accumulators and the loops that
keep them, the footprint of every tile level, and with it the bytes that cross caches of any size. None is a
prediction; the network on top weighs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import Float64

from gnnperf.graph import GRAPH_FEATURES, NODE_FIELDS, GraphBatch
from gnnperf.nn.traces.columns import columns_of, decoded, node_column
from gnnperf.nn.traces.cores import CORE_COLUMNS, core_columns
from gnnperf.nn.traces.statements import INTRINSIC, Statements, statements_of
from gnnperf.nn.traces.tiles import (
    LINE_BYTES,
    Tiles,
    instances_inside,
    shared_work,
    straight_levels,
    traffic_bytes,
    trips_kept,
)  # fmt: skip

if TYPE_CHECKING:
    from torch import Tensor

CACHE_BYTES = tuple(2.0**p for p in range(11, 27, 2))
"""Sizes of caches, 2 KiB to 32 MiB, whose traffic is counted; the network finds those that matter."""
INNERMOST = 5
"""Loops around a statement that are described one by one."""

_OPERATIONS = columns_of(
    NODE_FIELDS, "operations", "reduction", "guarded", "flops", "dtype", "m_extent", "n_extent", "k_extent"
)
_SCALARS = (
    "instances", "threads_share", "instances_of_thread", "flops_of_thread", "is_parallel", "parallel_trips",
    "balance", "launches", "task_instances", "depth", "is_intrinsic",
    "vector_extent", "vector_registers", "vector_fill", "body_instructions", "instructions_of_thread",
    "unrolled_extent", "accumulator_lines", "body_lines", "accumulating_trips", "inner_reduction_trips",
    "reads", "target_moves", "target_unit", "target_strided", "reads_invariant", "reads_unit",
    "reads_strided", "gathered_of_thread", "share_of_flops", "share_of_instances", "element_bytes",
    "footprint_lines",
)  # fmt: skip
_LEVEL = ("extent", "vectorized", "unrolled", "parallel", "accumulates", "reused", "unit", "lines")
NUMBERS: tuple[str, ...] = (
    *_SCALARS,
    *CORE_COLUMNS,
    *(f"{name}_{level}" for level in range(INNERMOST) for name in _LEVEL),
    *(f"traffic_{int(size) >> 10}k" for size in CACHE_BYTES),
    *(f"traffic_{int(size) >> 10}k_per_instance" for size in CACHE_BYTES),
    *(f"operations_{n}" for n in range(len(_OPERATIONS))),
    *(f"graph_{n}" for n in range(GRAPH_FEATURES)),
)
"""Names of the columns of `StatementNumbers.rows`: logarithms to base 2 of counts and sizes, or flags."""


class StatementNumbers(NamedTuple):
    """rows: f32[s, len(NUMBERS)] of s statements. graph: i64[s], the graph of each; every graph has one."""

    rows: Tensor
    graph: Tensor


def statement_numbers(batch: GraphBatch, threads: int) -> StatementNumbers:
    """Numbers of all statements of a batch. threads: that parallel loops are shared by."""
    statements = statements_of(batch)
    rows = np.concatenate([*_columns(statements, batch, threads)], axis=1).astype(np.float32)
    return StatementNumbers(torch.from_numpy(rows), torch.from_numpy(statements.graph))


def _columns(s: Statements, batch: GraphBatch, threads: int) -> Iterator[Float64[np.ndarray, "s _"]]:
    nodes = batch.node_features.numpy()[s.node]
    inside = instances_inside(s.extent)  # [s, D + 1]: instances of what lies inside of a level
    tiles = Tiles.of(s)
    yield _scalars(s, batch, threads, inside, tiles)
    yield from core_columns(s, inside, tiles, threads)
    yield from _levels(s, tiles)
    traffic = np.stack([traffic_bytes(s, inside, tiles, size) for size in CACHE_BYTES], 1)
    speedup = shared_work(s, inside, threads)["speedup"]
    yield np.log2(traffic / speedup[:, None])
    yield np.log2(traffic / inside[:, -1:])
    yield nodes[:, _OPERATIONS]
    yield batch.graph_features.numpy()[s.graph]


def _scalars(
    s: Statements, batch: GraphBatch, threads: int, inside: Float64[np.ndarray, "s E"], tiles: Tiles
) -> Float64[np.ndarray, "s _"]:
    nodes = batch.node_features.numpy()[s.node]
    rows, own = np.arange(len(s.node)), s.owner
    total = inside[:, -1]
    shared = shared_work(s, inside, threads)
    target, read = s.target.astype(np.float64), (~s.target).astype(np.float64)
    element = np.maximum(1.0, s.of_access(s.element_bytes * target))
    vector = np.where(s.vectorized, s.extent, 1.0).prod(1)
    registers = np.ceil(vector * element / LINE_BYTES)
    body = straight_levels(s)
    instructions = inside[rows, body] / vector * registers
    flops = decoded(nodes[:, node_column("flops")])
    intrinsic = batch.node_kind.numpy()[s.node] == INTRINSIC
    body_lines = tiles.lines[np.arange(len(own)), body[own]]
    innermost = tiles.step_bytes[:, 0]
    unit = (innermost > 0) & (innermost <= s.element_bytes)
    gathered = s.of_access(read * (innermost > s.element_bytes)) * total
    moves_target = s.of_access(tiles.moves * target[:, None]) > 0  # [s, D]
    graphs = int(s.graph.max(initial=-1)) + 1
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
        "vector_fill": vector * element / LINE_BYTES / registers,
        "body_instructions": np.log2(instructions),
        "instructions_of_thread": np.log2(total / vector * registers / shared["speedup"]),
        "unrolled_extent": np.log2(inside[rows, body] / vector),
        "accumulator_lines": np.log2(1 + s.of_access(target * body_lines)),
        "body_lines": np.log2(1 + s.of_access(read * body_lines)),
        "accumulating_trips": np.log2(trips_kept(s.extent, moves_target, body)),
        "inner_reduction_trips": np.log2(trips_kept(s.extent, moves_target, np.zeros_like(body))),
        "reads": s.of_access(read),
        "target_moves": moves_target[:, 0],
        "target_unit": s.of_access(target * unit),
        "target_strided": s.of_access(target * (innermost > s.element_bytes)),
        "reads_invariant": s.of_access(read * (innermost == 0)),
        "reads_unit": s.of_access(read * unit),
        "reads_strided": s.of_access(read * (innermost > s.element_bytes)),
        "gathered_of_thread": np.log2(1 + gathered / shared["speedup"]),
        "share_of_flops": _share(total * flops, s.graph, graphs),
        "share_of_instances": _share(total, s.graph, graphs),
        "element_bytes": element,
        "footprint_lines": np.log2(1 + s.of_access(tiles.lines[:, -1])),
    }
    return np.stack([values[name].astype(np.float64) for name in _SCALARS], 1)


def _share(values: Float64[np.ndarray, " s"], graph: np.ndarray, graphs: int) -> Float64[np.ndarray, " s"]:
    total = np.bincount(graph, values, graphs)[graph]
    return values / np.maximum(total, 1.0)


def _levels(s: Statements, tiles: Tiles) -> Iterator[Float64[np.ndarray, "s _"]]:
    """The innermost loops one by one, in the order of _LEVEL."""
    target, read = s.target.astype(np.float64), (~s.target).astype(np.float64)
    for level in range(INNERMOST):
        if level >= s.extent.shape[1]:
            yield np.zeros((len(s.node), len(_LEVEL)))
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
