"""The columns of the cost fields, of all graphs at once: looking at nodes one by one would take longer than a
network does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from jaxtyping import Float32, Float64, Int64

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph.costs.arrays import GraphArrays
from gnnperf.graph.costs.cores import Lanes, core_columns, registers_inside, vector_lanes_of
from gnnperf.graph.costs.fields import CACHE_BYTES, COST_FIELDS, INNERMOST
from gnnperf.graph.costs.loops import loop_columns
from gnnperf.graph.costs.scalars import level_columns, scalar_columns
from gnnperf.graph.costs.statements import LOOP, Statements, statements_of
from gnnperf.graph.costs.tiles import (
    LINE_BYTES,
    Tiles,
    fetched_bytes,
    instances_inside,
    shared_work,
    straight_levels,
)


class GraphCosts:
    """Cost fields of the nodes of some graphs, a row for each node that carries them.

    Rows of statements are in the order of `STATEMENT_COSTS`, and so on; every number is finite. They are
    computed when first asked for.

    Args:
        graphs: b of them, scheduled or not.
        threads: that parallel loops are shared by.
        vectors: of the processor.
    """

    def __init__(self, graphs: GraphArrays, threads: int, vectors: VectorUnit = AVX512) -> None:
        self.graphs = graphs
        self.threads = threads
        self.vectors = vectors

    @property
    def statement_nodes(self) -> Int64[np.ndarray, " s"]:
        """All `compute` and `intrinsic` nodes."""
        return self._statements.node

    @property
    def access_nodes(self) -> Int64[np.ndarray, " a"]:
        """The `access` nodes that statements make; not those of subscripts and bounds."""
        return self._statements.access

    @cached_property
    def loop_nodes(self) -> Int64[np.ndarray, " l"]:
        """All `loop` nodes."""
        return np.flatnonzero(self.graphs.node_kind == LOOP)

    @cached_property
    def statement_rows(self) -> Float32[np.ndarray, "s S"]:
        """In the order of `STATEMENT_COSTS`."""
        return np.concatenate([*self._statement_columns()], axis=1).astype(np.float32)

    @cached_property
    def access_rows(self) -> Float32[np.ndarray, "a A"]:
        """In the order of `ACCESS_COSTS`."""
        s, tiles, lanes = self._statements, self._tiles, self._lanes
        bytes_inside = tiles.lines * LINE_BYTES
        levels = [min(level + 1, s.extent.shape[1]) for level in range(INNERMOST)]
        _, registers = registers_inside(s, tiles, lanes, straight_levels(s).astype(np.int64), self.vectors)
        columns = [
            bytes_inside[:, levels],
            bytes_inside[:, -1:],
            lanes.step_bytes[:, None],
            registers[:, None],
            *(fetched[:, None] for fetched in self._fetched),
        ]
        return np.log2(1 + np.concatenate(columns, axis=1)).astype(np.float32)

    @cached_property
    def loop_rows(self) -> Float32[np.ndarray, "l L"]:
        """In the order of `LOOP_COSTS`."""
        columns = loop_columns(self._statements, self.graphs, self._inside, self._tiles)
        return np.log2(1 + columns[self.loop_nodes]).astype(np.float32)

    def node_rows(self) -> Float32[np.ndarray, "n C"]:
        """A row for every node in the order of `COST_FIELDS`, 0 where its kind does not carry the field."""
        result = np.zeros((len(self.graphs.node_kind), len(COST_FIELDS)), np.float32)
        at = 0
        for nodes, rows in (
            (self.statement_nodes, self.statement_rows),
            (self.access_nodes, self.access_rows),
            (self.loop_nodes, self.loop_rows),
        ):
            result[nodes, at : at + rows.shape[1]] = rows
            at += rows.shape[1]
        return result

    @cached_property
    def _statements(self) -> Statements:
        return statements_of(self.graphs)

    @cached_property
    def _inside(self) -> Float64[np.ndarray, "s E"]:
        return instances_inside(self._statements.extent)

    @cached_property
    def _tiles(self) -> Tiles:
        return Tiles.of(self._statements)

    @cached_property
    def _lanes(self) -> Lanes:
        return vector_lanes_of(self._statements, self._tiles)

    @cached_property
    def _fetched(self) -> list[Float64[np.ndarray, " a"]]:
        """Into caches of each size."""
        return [fetched_bytes(self._statements, self._inside, self._tiles, size) for size in CACHE_BYTES]

    def _statement_columns(self) -> Iterator[Float64[np.ndarray, "s _"]]:
        s, inside, tiles = self._statements, self._inside, self._tiles
        yield scalar_columns(s, self.graphs, inside, tiles, self.threads, self.vectors)
        yield from core_columns(s, inside, tiles, self._lanes, self.threads, self.vectors)
        yield from level_columns(s, tiles)
        traffic = np.stack([np.maximum(1.0, s.of_access(fetched)) for fetched in self._fetched], 1)
        speedup = shared_work(s, inside, self.threads)["speedup"]
        yield np.log2(traffic / speedup[:, None])
        yield np.log2(traffic / inside[:, -1:])
