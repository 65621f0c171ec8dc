"""A planned band of loops as TVM schedule primitives: split, reorder, copy, vectorise, parallelise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gnnperf.errors import NotApplicable
from gnnperf.schedules.recipes.accumulate import MAX_ACCUMULATOR_ELEMENTS
from gnnperf.schedules.recipes.packing import pack_position, packed_operands
from gnnperf.schedules.recipes.plan import BandPlan, Token
from gnnperf.schedules.traces.factors import Factors, distance, nearest, with_remainder

FAR = 1.5
"""Doublings (see `factors.distance`) that tiles which divide may be from those asked for: what is left over
costs more, as TVM guards it in the innermost loop."""
WRITTEN_OUT = 64
"""Iterations that are written out at most."""
WIDEST = 8
"""Vectors that are written as one, at most, where whole ones do not divide a loop."""
FEWEST = 4
"""Lanes that are worth a vector."""

Parts = Mapping[Token, list[Any]]
"""Loops of every token, outermost first: points may be vectors and their lanes."""


@dataclass
class TiledBand:
    """One block on its way from loops as the function has them to the plan's.

    own: the block's loops that are not scheduled yet, outermost first. iterators: of the band, one for each;
    None where a loop has one iteration.
    """

    schedule: Any
    block: Any
    plan: BandPlan
    own: Sequence[Any]
    iterators: Sequence[str | None]
    depth: int = field(init=False)
    """Loops around the block that are scheduled already."""

    def __post_init__(self) -> None:
        self.depth = len(self.schedule.get_loops(self.block)) - len(self.own)

    def lower(self) -> int:
        """Schedule the block; how many loops are outside of its reduction."""
        plan = self.plan
        if plan.roles.sequential:
            raise NotApplicable("loops that must run in order")
        loops = {name: lp for name, lp in zip(self.iterators, self.own, strict=True) if name is not None}
        parts = self._split(loops)
        self._reorder(parts)
        parts = self._parallel(parts)
        around = self._outside(parts, plan.reduction_from or 0)
        self._pack(parts)
        if plan.reduction_from is not None:
            self._accumulate(parts, around)
        self._points(parts)
        if plan.reduction_from is not None:
            self._initialise(around)
        return around

    # ------------------------------------------------------------------ tiles

    def _split(self, loops: Mapping[str, Any]) -> Parts:
        """Loops by iterator, in tiles, in the plan's order."""
        found: dict[Token, list[Any]] = {}
        for name, loop in loops.items():
            tokens = sorted((t for t in self.plan.tokens if t.iterator == name), key=lambda t: -t.level)
            lanes = self._lanes(tokens, loop)
            units = -(-self._extent(loop) // lanes)
            factors = tiles(units, self._wanted(tokens, lanes))
            pieces = self._pieces(loop, [*factors[1:], *([lanes] if lanes > 1 else [])])
            last = len(tokens) - 1
            found |= {t: [piece] for t, piece in zip(tokens[:last], pieces, strict=False)}
            found[tokens[last]] = pieces[last:]
        return {t: found[t] for t in self.plan.tokens if t in found}

    def _wanted(self, tokens: Sequence[Token], lanes: int) -> list[int]:
        """Sizes of the tiles, outermost first, in vectors where there are lanes."""
        recipe, levels = self.plan.recipe, {t.level: t for t in tokens}
        register = max(1, recipe.register(levels[0].role)) if 1 in levels else 1
        if lanes > 1:
            register = max(1, round(register * self.plan.lanes / lanes))
        wanted = [register] if 1 in levels else []
        if 2 in levels:
            wanted.insert(0, max(1, self.plan.tile_size(levels[2]) // (register * lanes)))
        return wanted

    def _lanes(self, tokens: Sequence[Token], loop: Any) -> int:
        """Iterations that run across the lanes of a vector; 1 where the loop is none."""
        point = tokens[-1]
        if self.plan.vector_point(point) != point.iterator and (
            point.role != "p" or self.plan.tokens[-1] != point
        ):
            return 1
        return lanes_of(self._extent(loop), self.plan.lanes)

    # ------------------------------------------------------------------ operands and results

    def _pack(self, parts: Parts) -> None:
        """Tiles of operands copied to where they are contiguous. An operand as a whole stays as it is."""
        order, schedule = list(parts), self.schedule
        for load in packed_operands(self.plan):
            position = pack_position(self.plan, load)
            names = [str(r.source.name) for r in schedule.get(self.block).reads]
            at = parts[order[position - 1]] if position > (self.plan.parallel_at or 0) else []
            if not at or load.buffer not in names:
                continue
            copy = schedule.cache_read(self.block, names.index(load.buffer), "global")
            schedule.compute_at(copy, at[-1])
            self._finish(copy, self._outside(parts, position))

    def _accumulate(self, parts: Parts, around: int) -> None:
        """Partial results in registers where all of the reduction runs there. Where it does not, they are in
        memory, and LLVM keeps those of a register tile in registers. around: loops outside of the
        reduction."""
        plan, schedule, start = self.plan, self.schedule, self.plan.reduction_from
        points = [lp for t in plan.tokens[start:] for lp in parts[t] if not t.is_reduction]
        few = math.prod(map(self._extent, points)) <= MAX_ACCUMULATOR_ELEMENTS
        if plan.accumulate_at == start and around > self.depth and few:
            copy = schedule.cache_write(self.block, 0, "local")
            schedule.reverse_compute_at(copy, schedule.get_loops(self.block)[around - 1])
            self._finish(copy, around)

    def _initialise(self, around: int) -> None:
        """Initial values ahead of the reduction, inside of `around` loops."""
        first = self.schedule.get_loops(self.block)[around]
        self._finish(self.schedule.decompose_reduction(self.block, first), around)

    # ------------------------------------------------------------------ annotations

    def _points(self, parts: Parts) -> None:
        """Register tiles written out, lanes as vectors."""
        tiled = {t.iterator for t in parts if t.level == 1}
        for token, loops in parts.items():
            if token.level != 0 or not loops:
                continue
            if len(loops) > 1:
                self.schedule.vectorize(loops[-1])
            if token.iterator in tiled:
                self.schedule.unroll(loops[0])
            elif token.role == "r" and self.plan.recipe.unroll > 1:
                factors = tiles(self._extent(loops[0]), [self.plan.recipe.unroll])
                self.schedule.unroll(self._pieces(loops[0], factors[1:])[-1])

    def _finish(self, block: Any, around: int) -> None:
        """The loops of a copy, or of initial values, inside of `around` others: lanes, the others written out
        where they are few."""
        loops = list(self.schedule.get_loops(block))[around:]
        if not loops or self.plan.vector is None:
            return
        size = self._extent(loops[-1])
        lanes = lanes_of(size, self.plan.lanes)
        if size > lanes:
            loops[-1:] = self._pieces(loops[-1], [lanes])
        if lanes > 1:
            self.schedule.vectorize(loops.pop())
        written = 1
        for loop in reversed(loops):
            written *= self._extent(loop)
            if written > WRITTEN_OUT:
                break
            self.schedule.unroll(loop)

    def _parallel(self, parts: Parts) -> Parts:
        """Threads over the plan's loop, and over as many inside of it as the recipe collapses: those become
        one loop, which is the last of them."""
        start, order = self.plan.parallel_at, list(parts)
        if start is None:
            return parts
        run = order[start : start + 1]
        for token in order[start + 1 : start + max(1, self.plan.recipe.collapse)]:
            if token.is_reduction or token.level == 0 or len(parts[run[-1]]) > 1:
                break
            run.append(token)
        if len(run) == 1:
            self.schedule.parallel(parts[run[0]][0])
            return parts
        fused = self.schedule.fuse(*(parts[token][0] for token in run))
        self.schedule.parallel(fused)
        return {**parts, **{token: [] for token in run[:-1]}, run[-1]: [fused]}

    # ------------------------------------------------------------------ loops

    def _reorder(self, parts: Parts) -> None:
        """The loops in the plan's order. Loops of one iteration come first in the reduction, as some of them
        may belong to it."""
        start = self.plan.reduction_from or 0
        units = [lp for lp, name in zip(self.own, self.iterators, strict=True) if name is None]
        outer = [lp for t in list(parts)[:start] for lp in parts[t]]
        order = [*outer, *units, *(lp for t in list(parts)[start:] for lp in parts[t])]
        if len(order) > 1:
            self.schedule.reorder(*order)

    def _outside(self, parts: Parts, position: int) -> int:
        """Loops around the block ahead of a token; those of one iteration are not among them."""
        return self.depth + sum(len(parts[t]) for t in list(parts)[:position])

    def _extent(self, loop: Any) -> int:
        return int(self.schedule.get(loop).extent)

    def _pieces(self, loop: Any, inner: Sequence[int]) -> list[Any]:
        return list(self.schedule.split(loop, [None, *inner])) if inner else [loop]


def tiles(extent: int, wanted: Sequence[int]) -> Factors:
    """Factors of an extent, outermost first, the inner ones as wanted: those that divide it where some are
    near, else with a part of the last tile left over."""
    if not wanted:
        return (extent,)
    old = (max(1, -(-extent // math.prod(wanted))), *wanted)
    best = nearest(extent, old, 0, 1)[0]
    return best if distance(best, old) <= FAR else with_remainder(extent, old) or best


def lanes_of(extent: int, lanes: int) -> int:
    """Iterations that run at once along a loop: all lanes where they divide it, else the most that do and
    fill half of the lanes, else a few vectors as one; where nothing divides it, some are left over."""
    if extent % lanes == 0:
        return lanes
    widths = [*range(lanes - 1, max(1, lanes // 2 - 1), -1), *range(lanes + 1, WIDEST * lanes + 1)]
    return next((d for d in widths if extent % d == 0), min(extent, lanes))


def whole_lanes(extent: int, lanes: int) -> int:
    """The widest vectors that leave nothing over, a power of two where that is no fewer than `FEWEST`; 0
    where they would be fewer."""
    even = math.gcd(extent, lanes)
    widths = range(min(lanes, extent), FEWEST - 1, -1)
    return even if even >= FEWEST else next((d for d in widths if extent % d == 0), 0)
