"""Vectors, and what the compiler keeps in registers: guesses from the innermost loops around a statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from gnnperf.devices import VectorUnit
from gnnperf.graph.costs.columns import log2_or_0
from gnnperf.graph.costs.statements import Statements
from gnnperf.graph.costs.tiles import Tiles, shared_work, straight_levels, trips_kept


def core_columns(
    s: Statements,
    inside: Float64[np.ndarray, "s E"],
    tiles: Tiles,
    lanes: Lanes,
    threads: int,
    unit: VectorUnit,
) -> Iterator[Float64[np.ndarray, "s _"]]:
    """Of the lanes, and of two guesses of what the compiler keeps in registers: what is unrolled and
    vectorized, and what lies inside of the innermost loop that accumulates (short loops are unrolled without
    being told)."""
    moves_target = s.of_access(tiles.moves * s.target[:, None]) > 0
    padded = np.exp2(np.ceil(np.log2(lanes.width)))
    element = s.of_access(s.element_bytes * s.target)
    awkward = ~lanes.automatic & (padded > lanes.width) & (lanes.width * element > unit.bytes)
    kept = np.log2(trips_kept(s.extent, moves_target, lanes.level))
    yield np.stack(
        [np.log2(lanes.width), lanes.automatic, np.log2(padded / lanes.width), awkward, awkward * kept], 1
    )
    still = ~moves_target
    still &= np.arange(s.extent.shape[1]) < s.levels[:, None]
    tile = np.where(still.any(1), still.argmax(1), 0)
    speedup = shared_work(s, inside, threads)["speedup"]
    for level in (lanes.level, np.maximum(lanes.level, tile)):
        yield _core(s, inside, tiles, lanes, level, speedup, unit)


class Lanes(NamedTuple):
    """What one vector instruction covers. width: in elements. automatic: no loop is marked as vectorized, but
    the compiler can do it: what it finds around straight code steps through memory one by one. level: the
    innermost level outside of vectors and straight code. step_bytes: of each access from lane to lane."""

    width: Float64[np.ndarray, " s"]
    automatic: np.ndarray
    level: np.ndarray
    step_bytes: Float64[np.ndarray, " a"]


def vector_lanes_of(s: Statements, tiles: Tiles) -> Lanes:
    """Of every statement."""
    rows, a, depth = np.arange(len(s.node)), np.arange(len(s.owner)), s.extent.shape[1]
    marked = s.vectorized.any(1)
    body = straight_levels(s)
    level = np.where(marked, s.vectorized.argmax(1), np.minimum(body, depth - 1))
    step = tiles.step_bytes[a, level[s.owner]]
    far = s.of_access(step > s.element_bytes) > 0
    still = s.of_access(s.target * (step == 0)) > 0
    automatic = ~marked & ~far & ~still & (body < s.levels)
    own = np.where(automatic, s.extent[rows, level], 1.0)
    width = np.where(marked, np.where(s.vectorized, s.extent, 1.0).prod(1), own)
    return Lanes(width, automatic, body + automatic, step)


def registers_inside(
    s: Statements, tiles: Tiles, lanes: Lanes, level: np.ndarray, unit: VectorUnit
) -> tuple[Float64[np.ndarray, " a"], Float64[np.ndarray, " a"]]:
    """Elements that each access touches inside of a level, and registers that hold them: vectors where lanes
    lie one by one."""
    elements = tiles.elements[np.arange(len(s.owner)), level[s.owner]]
    one_by_one = (lanes.step_bytes > 0) & (lanes.step_bytes <= s.element_bytes) & (lanes.width[s.owner] > 1)
    return elements, np.where(one_by_one, np.maximum(1.0, elements * s.element_bytes / unit.bytes), elements)


def _core(
    s: Statements,
    inside: np.ndarray,
    tiles: Tiles,
    lanes: Lanes,
    level: np.ndarray,
    speedup: np.ndarray,
    unit: VectorUnit,
) -> Float64[np.ndarray, "s _"]:
    """Registers, instructions and loads of what lies inside of a level, in the order of the registry."""
    rows = np.arange(len(s.node))
    elements, vectors = registers_inside(s, tiles, lanes, level, unit)
    accumulators = s.of_access(s.target * vectors)
    loads = s.of_access(~s.target * vectors)
    gathers = s.of_access(np.where(lanes.step_bytes > s.element_bytes, elements, 0.0))
    element = np.maximum(1.0, s.of_access(s.element_bytes * s.target))
    instructions = inside[rows, level] / lanes.width * np.ceil(lanes.width * element / unit.bytes)
    moves_target = s.of_access(tiles.moves * s.target[:, None]) > 0
    trips = trips_kept(s.extent, moves_target, level)
    times = inside[:, -1] / inside[rows, level] / speedup
    columns = (
        np.log2(1 + accumulators),
        np.log2(instructions),
        np.log2(1 + loads),
        np.log2(trips),
        log2_or_0(times * (loads + 2 * accumulators / trips)),
        np.log2(times * instructions),
        np.log2(np.maximum(1.0, accumulators / unit.registers)),
        np.log2(1 + times * gathers),
    )
    return np.stack(columns, 1)
