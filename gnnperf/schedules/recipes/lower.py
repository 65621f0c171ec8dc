"""Apply a recipe to one band of loops: split, reorder, accumulate, vectorise, parallelise.

The band is rebuilt from the recipe's token list, outermost first. Every iterator carries the range
that is left of it at the current depth; a split narrows the range, the point token consumes it.
Splits that do not divide are completed by smaller pieces (a 6-row register tile by single rows, a
4-vector column by single vectors, then elements), so no bound is ever rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import accesses, extent, rename_buffers
from gnnperf.nests.ir import (
    Annotation,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    substitute_node,
)
from gnnperf.nests.ranges import longest
from gnnperf.nests.trip_counts import tile_trips
from gnnperf.schedules.recipes.accumulate import Accumulators
from gnnperf.schedules.recipes.initial_values import explicit_init, init_statements
from gnnperf.schedules.recipes.packing import pack_operands, pack_position, packed_operands
from gnnperf.schedules.recipes.plan import BandPlan, Token


@dataclass(frozen=True)
class Range:
    """Iterations [lo, hi) left of an iterator. `size`: their exact number where constant;
    `limit`: an upper bound where known; `fixed`: a register tile, to be unrolled or vectorised;
    `trips`: their measured number where it depends on data."""

    lo: Expr
    hi: Expr
    size: int | None
    limit: int | None
    fixed: bool = False
    trips: float | None = None

    @staticmethod
    def of(loop: Loop) -> Range:
        size = extent(loop)
        return Range(loop.start, loop.stop, size, size, trips=loop.measured_trips)


class BandLowering(BandPlan):
    """The recursive construction of one scheduled band."""

    @cached_property
    def packed(self) -> dict[int, list[Load]]:
        """Position in `tokens` -> the loads of which copies are due there."""
        found: dict[int, list[Load]] = {}
        for load in packed_operands(self):
            found.setdefault(pack_position(self, load), []).append(load)
        return found

    def lower(self) -> tuple[Node, ...]:
        ranges = {lp.iterator: Range.of(lp) for lp in self.band.loops}
        return pack_operands(self, ranges, self.band.statements, 0)

    def build(
        self, position: int, ranges: Mapping[str, Range], statements: list[Statement]
    ) -> tuple[Node, ...]:
        if position == len(self.tokens):
            return self._with_fresh_locals([part for s in statements for part in explicit_init(s)])
        prefix: tuple[Node, ...] = ()
        if position == self.reduction_from and position != self.accumulate_at:
            prefix, statements = init_statements(self, position, ranges, statements)
        if position == self.accumulate_at:
            accumulators = Accumulators.create(self, position, ranges, statements)
            if accumulators is not None:
                body = self.build_loop(position, ranges, accumulators.inner_statements)
                return (*prefix, *accumulators.prologue, *body, *accumulators.epilogue)
            if position == self.reduction_from:
                prefix, statements = init_statements(self, position, ranges, statements)
        return (*prefix, *self.build_loop(position, ranges, statements))

    def _with_fresh_locals(self, statements: list[Statement]) -> tuple[Node, ...]:
        """Every copy of the innermost statements (a tile, its remainder) has locals of its own."""
        used = {a.load.buffer for s in statements for a in accesses(s)}
        names = {name: self.names.fresh(name) for name in sorted(self.own & used)}
        for name, new in names.items():
            self.buffers[new] = replace(self.buffers[name], name=new)
        return tuple(rename_buffers(s, names) for s in statements)

    def build_loop(
        self, position: int, ranges: Mapping[str, Range], statements: list[Statement]
    ) -> tuple[Node, ...]:
        token = self.tokens[position]
        if token.level == 2:
            return self._tile_loop(position, ranges, statements)
        if token.level == 1:
            return self._register_loops(position, ranges, statements)
        return self._point_loop(position, ranges, statements)

    def _tile_loop(
        self, position: int, ranges: Mapping[str, Range], statements: list[Statement]
    ) -> tuple[Node, ...]:
        token, size = self.tokens[position], self.tile_size(self.tokens[position])
        whole = ranges[token.iterator]
        name = f"{token.iterator}_t"
        exact = whole.size is not None and whole.size % size == 0
        tiles, points = tile_trips(whole.trips, size)
        end: Expr = Op("add", (Symbol(name), Const(size)))
        inner = Range(
            Symbol(name),
            simplify(end if exact else Op("min", (end, whole.hi))),
            size if exact else None,
            size,
            trips=points,
        )
        body = self.next(position, {**ranges, token.iterator: inner}, statements)
        annotation = self._parallel_annotation(position)
        independent = self.loops[token.iterator].independent
        loop = Loop(name, whole.lo, whole.hi, body, size, independent, annotation, 2, measured_trips=tiles)
        return (loop,)

    def _register_loops(
        self, position: int, ranges: Mapping[str, Range], statements: list[Statement]
    ) -> tuple[Node, ...]:
        token = self.tokens[position]
        whole = ranges[token.iterator]
        nodes: list[Node] = []
        start = whole.lo
        left, trips = whole.size, whole.trips
        most = whole.limit if whole.limit is not None else longest(whole.lo, whole.hi)
        for size in self._cascade(token, left):
            if left == 0:
                break
            pieces = None if left is None else left // size
            if pieces == 0 or (size > 1 and most is not None and most < size):
                continue
            name = f"{token.iterator}_r"
            if pieces is None:
                span: Expr = Op("sub", (whole.hi, start))
                if whole.lo == self.loops[token.iterator].start:  # may begin behind its end: no iteration
                    span = Op("max", (span, Const(0)))
                stop = (
                    whole.hi
                    if size == 1
                    else Op("add", (start, Op("mul", (Const(size), Op("floordiv", (span, Const(size)))))))
                )
            else:
                stop = Op("add", (start, Const(pieces * size)))
            stop = simplify(stop)
            lo: Expr = start if pieces == 1 else Symbol(name)
            inner = Range(lo, simplify(Op("add", (lo, Const(size)))), size, size, fixed=True)
            body = self.next(position, {**ranges, token.iterator: inner}, statements)
            if pieces == 1:
                nodes.extend(substitute_node(n, {name: lo}) for n in body)
            else:
                annotation = self._parallel_annotation(position)
                independent = self.loops[token.iterator].independent
                loop = Loop(name, start, stop, body, size, independent, annotation, int(size > 1))
                if trips is not None:
                    whole_tiles = trips // size if size > 1 else trips
                    loop = replace(loop, measured_trips=whole_tiles)
                    trips -= whole_tiles * size
                nodes.append(loop)
            start = stop
            left = None if left is None else left - (pieces or 0) * size
        return tuple(nodes)

    def _cascade(self, token: Token, size: int | None) -> list[int]:
        """Sizes of the pieces to try, in falling order; `size`: iterations, where their number is constant.

        What is left of the contiguous loop behind its whole tiles is a tile too (of full vectors, then
        narrower ones): every piece of it walks through the reductions once more."""
        if token.role == "q":
            return [self.recipe.register_q, 1]
        if token.role == "r":
            return [max(1, self.recipe.register_r) * self.lanes, 1]
        tile = self.recipe.register_p * self.lanes
        if size is not None and (rest := size % tile) > 1:
            return [tile, rest]
        return sorted({tile, self.lanes, 1}, reverse=True)

    def _point_loop(
        self, position: int, ranges: Mapping[str, Range], statements: list[Statement]
    ) -> tuple[Node, ...]:
        token = self.tokens[position]
        whole = ranges[token.iterator]
        loop = self.loops[token.iterator]
        at: Expr = whole.lo if whole.size == 1 else Symbol(token.iterator)
        here = Range(at, simplify(Op("add", (at, Const(1)))), 1, 1)
        body = self.next(position, {**ranges, token.iterator: here}, statements)
        if whole.size == 1:
            return tuple(substitute_node(n, {token.iterator: whole.lo}) for n in body)
        annotation = self._parallel_annotation(position) or self._point_annotation(token, whole)
        points = Loop(token.iterator, whole.lo, whole.hi, body, 1, loop.independent, annotation)
        return (replace(points, measured_trips=whole.trips),)

    def _point_annotation(self, token: Token, whole: Range) -> Annotation | None:
        if whole.fixed:
            return self._written_out(token.iterator)
        if token.role == "p":
            return Annotation("simd") if self.tokens[-1] == token else None
        if token.role == "r":
            prefetch = self.recipe.prefetch
            if self.recipe.unroll > 1:
                return Annotation("unrolled", factor=self.recipe.unroll, prefetch=prefetch)
            return Annotation("none", prefetch=prefetch) if prefetch else None
        return None

    def _written_out(self, iterator: str) -> Annotation:
        if iterator == self.vector:
            return Annotation(
                "vectorized", vector_bytes=self.vectors.bytes, nontemporal=self.recipe.nontemporal
            )
        return Annotation("unrolled")

    def _parallel_annotation(self, position: int) -> Annotation | None:
        if position != self.parallel_at:
            return None
        return Annotation(
            "parallel",
            omp_schedule=self.recipe.omp_schedule,
            chunk=self.recipe.chunk,
            collapse=self.recipe.collapse,
        )

    def next(
        self, position: int, ranges: Mapping[str, Range], statements: list[Statement]
    ) -> tuple[Node, ...]:
        return pack_operands(self, ranges, statements, position + 1)

    def remaining(self, position: int) -> list[str]:
        """Iterators that still have tokens at or after `position`, in token order."""
        return list(dict.fromkeys(t.iterator for t in self.tokens[position:]))

    def point_loops(
        self, names: list[str], ranges: Mapping[str, Range], body: tuple[Node, ...]
    ) -> tuple[Node, ...]:
        """Loops over what is left of the named iterators."""
        for name in reversed(names):
            whole = ranges[name]
            if whole.size == 1:
                body = tuple(substitute_node(n, {name: whole.lo}) for n in body)
                continue
            annotation = None
            if whole.fixed:
                annotation = self._written_out(name)
            elif name in self.roles.by_role["p"]:
                annotation = Annotation("simd")
            body = (Loop(name, whole.lo, whole.hi, body, annotation=annotation, measured_trips=whole.trips),)
        return body
