"""What statements touch inside of every level of the loops around them, and how threads share the work."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from gnnperf.graph.costs.statements import Statements

LINE_BYTES = 64
"""A cache line."""


class Tiles(NamedTuple):
    """What each access touches inside of each level: elements and cache lines, [a, D + 1]; moves: whether a
    loop moves it, [a, D]; step_bytes: how far, 0 where not."""

    elements: Float64[np.ndarray, "a E"]
    lines: Float64[np.ndarray, "a E"]
    moves: Float64[np.ndarray, "a D"]
    step_bytes: Float64[np.ndarray, "a D"]

    @staticmethod
    def of(s: Statements) -> Tiles:
        extent = s.extent[s.owner]
        stride = s.stride_bytes
        moved = stride > 0
        reach = _running(np.cumsum((extent - 1)[:, :, None] * stride, 1), 0.0)
        steps = _running(np.cumprod(np.where(moved, extent[:, :, None], 1.0), 1), 1.0)
        least = _running(np.minimum.accumulate(np.where(moved, stride, np.inf), 1), np.inf)
        with np.errstate(invalid="ignore"):
            spread = np.where(np.isfinite(least), reach / least, 0.0) + 1
        count = np.minimum(steps, spread)  # [a, D + 1, R] elements along each array dimension
        elements = count.prod(2)
        unit = least.argmin(2)[:, :, None]
        step = np.minimum(np.take_along_axis(least, unit, 2)[:, :, 0], LINE_BYTES)
        run = np.take_along_axis(count, unit, 2)[:, :, 0]
        lines = elements / run * np.maximum(1.0, run * np.where(np.isfinite(step), step, 1.0) / LINE_BYTES)
        step_bytes = np.where(moved, stride, np.inf).min(2)
        moves = moved.any(2)
        return Tiles(elements, lines, moves.astype(np.float64), np.where(moves, step_bytes, 0.0))


def instances_inside(extent: Float64[np.ndarray, "s D"]) -> Float64[np.ndarray, "s E"]:
    """How often a statement runs for one run of what lies inside of each level."""
    return _running(np.cumprod(extent, 1), 1.0)


def _running(cumulated: np.ndarray, start: float) -> np.ndarray:
    """With the value before the first level in front."""
    return np.concatenate([np.full_like(cumulated[:, :1], start), cumulated], axis=1)


def fetched_bytes(
    s: Statements, inside: Float64[np.ndarray, "s E"], tiles: Tiles, size: float
) -> Float64[np.ndarray, " a"]:
    """Bytes that enter a cache of `size` bytes for each access: the largest tile that fits is loaded once for
    each time around it, but what the next loop does not move stays."""
    fits = s.of_access(tiles.lines * LINE_BYTES) <= size  # [s, D + 1]
    level = np.cumprod(fits, 1).sum(1) - 1
    level = np.maximum(level, 0)[s.owner]
    a = np.arange(len(level))
    around = inside[s.owner, -1] / inside[s.owner, level]
    depth = s.extent.shape[1]
    outer = np.minimum(level, depth - 1)
    stays = (level < depth) & (tiles.moves[a, outer] == 0)
    reloads = around / np.where(stays, s.extent[s.owner, outer], 1.0)
    return tiles.lines[a, level] * LINE_BYTES * reloads


def straight_levels(s: Statements) -> Float64[np.ndarray, " s"]:
    """How many innermost loops are vectorized or unrolled: straight code."""
    straight = (s.vectorized | s.unrolled) & (np.arange(s.extent.shape[1]) < s.levels[:, None])
    return np.cumprod(straight, 1).sum(1)


def trips_kept(
    extent: Float64[np.ndarray, "s D"], moves: np.ndarray, start: np.ndarray
) -> Float64[np.ndarray, " s"]:
    """Trips of the loops from level `start` outwards before one moves the target: accumulators stay."""
    levels = np.arange(extent.shape[1])
    within = levels >= start[:, None]
    stopped = np.cumsum(within & moves, 1) > 0
    return np.where(within & ~stopped, extent, 1.0).prod(1)


def shared_work(s: Statements, inside: Float64[np.ndarray, "s E"], threads: int) -> dict[str, np.ndarray]:
    """How the loops that run in parallel share the work: what is inside and outside of them, per launch."""
    trips = np.where(s.parallel, s.extent, 1.0).prod(1)
    any_of = s.parallel.any(1)
    first = s.parallel.argmax(1)
    last = s.parallel.shape[1] - 1 - s.parallel[:, ::-1].argmax(1)
    rows = np.arange(len(trips))
    task = np.where(any_of, inside[rows, first], inside[:, -1])
    launches = np.where(any_of, inside[:, -1] / inside[rows, last + 1], 0.0)
    chunks = np.ceil(trips / threads)
    return {"any": any_of, "trips": trips, "task": task, "launches": launches, "speedup": trips / chunks}
