"""Apply a recipe to one band of loops: split, reorder, accumulate, vectorise, parallelise.

The band is rebuilt from the recipe's token list, outermost first. Every iterator carries the range
that is left of it at the current depth; a split narrows the range, the point token consumes it.
Splits that do not divide are completed by smaller pieces (a 6-row register tile by single rows, a
4-vector column by single vectors, then elements), so no bound is ever rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gnnperf.errors import NotApplicable
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import Band, accesses, bound_dependences, extent, is_data_dependent, safe_parallel
from gnnperf.nests.ir import (
    Annotation,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    map_node,
    substitute_node,
)
from gnnperf.schedules.accumulate import Accumulators
from gnnperf.schedules.initial_values import explicit_init, init_statements
from gnnperf.schedules.names import Names
from gnnperf.schedules.packing import pack_operands
from gnnperf.schedules.recipe import Recipe
from gnnperf.schedules.roles import Roles, assign_roles
from gnnperf.schedules.vectors import guarded_loads, lanes, vectorizable


@dataclass(frozen=True)
class Range:
    """Iterations [lo, hi) left of an iterator. `size`: their exact number where constant;
    `limit`: an upper bound where known; `fixed`: a register tile, to be unrolled or vectorised."""

    lo: Expr
    hi: Expr
    size: int | None
    limit: int | None
    fixed: bool = False


@dataclass(frozen=True)
class Token:
    iterator: str
    level: int
    role: str

    @property
    def is_reduction(self) -> bool:
        return self.role in "Rr"


@dataclass
class BandLowering:
    """State shared by the recursive construction of one scheduled band."""

    band: Band
    recipe: Recipe
    buffers: dict[str, Buffer]
    own: frozenset[str]
    """Local buffers of one iteration of the band."""
    parallel_allowed: bool
    names: Names
    roles: Roles = field(init=False)
    tokens: list[Token] = field(init=False)
    lanes: int = field(init=False)
    vector: str | None = field(init=False)
    vector_role: str = field(init=False, default="none")

    def __post_init__(self) -> None:
        self.roles = assign_roles(self.band, self.buffers, self.own)
        self.lanes = max((lanes(s, self.buffers) for s in self.band.statements), default=1)
        self.loops = {lp.iterator: lp for lp in self.band.loops}
        self.guarded = guarded_loads(self.band, self.buffers)
        self.vector = self._vector_iterator()
        self.tokens = self._lanes_innermost(self._legal_order(self._existing_tokens()))
        self.parallel_at = self._parallel_position()
        self.reduction_from = next((i for i, t in enumerate(self.tokens) if t.is_reduction), None)
        self.accumulate_at = self._accumulator_position()

    # ------------------------------------------------------------------ planning

    def _vector_iterator(self) -> str | None:
        """The iterator that runs across lanes: the recipe's role, or the other one where a band of the
        unit has no such loop or no vector form along it."""
        wanted = self.roles.contiguous if self.recipe.vector == "auto" else self.recipe.vector
        preference = {"p": ("p", "r"), "r": ("r", "p"), "none": ()}[wanted]
        if self.guarded:
            return None
        for role in preference:
            for name in self.roles.by_role[role]:
                if role == "r" and not self._reduces_across_lanes():
                    continue
                if all(vectorizable(s, name, self.buffers) for s in self.band.statements):
                    self.vector_role = role
                    return name
        return None

    def _reduces_across_lanes(self) -> bool:
        reductions = all(
            s.reduce is not None and s.target.buffer not in self.own for s in self.band.statements
        )
        return reductions and self.recipe.accumulate

    def _existing_tokens(self) -> list[Token]:
        tokens: list[Token] = []
        for text in self.recipe.tokens:
            role, level = text[0], int(text[1])
            for name in self.roles.by_role[role]:
                if level == 2 and not self._tiled(name, role):
                    continue
                if level == 1 and not self._register_tiled(name, role):
                    continue
                tokens.append(Token(name, level, role))
        return tokens

    def _lanes_innermost(self, tokens: list[Token]) -> list[Token]:
        """Vector lanes are the innermost loop whatever the order says of their points."""
        lanes_ = [t for t in tokens if t.level == 0 and t.iterator == self.vector_point(t)]
        return [t for t in tokens if t not in lanes_] + lanes_

    def _tiled(self, name: str, role: str) -> bool:
        size, tile = extent(self.loops[name]), self.recipe.tile(role)
        if role == "r" and not tile and self._splits_for_threads(name):
            return True
        return tile > 0 and (size is None or size > tile) and not is_data_dependent(self.loops[name])

    def _splits_for_threads(self, name: str) -> bool:
        """A lone parallel reduction loop is tiled, so that threads own whole accumulators."""
        return self.recipe.parallel == "reduction" and not self.roles.by_role["R"] and self.parallel_allowed

    def _tile_size(self, token: Token) -> int:
        tile = self.recipe.tile(token.role)
        if tile:
            return tile
        size = extent(self.loops[token.iterator]) or 4096
        return max(1, -(-size // 16))

    def _register_tiled(self, name: str, role: str) -> bool:
        if name in self.roles.pinned:
            return False
        if role in ("p", "r"):
            return name == self.vector and (role == "r" or self.recipe.register_p > 0)
        return role == "q" and self.recipe.register_q > 1

    def _legal_order(self, tokens: list[Token]) -> list[Token]:
        """The recipe's order, bent where bounds depend on outer points and around sequential loops."""
        sequential = list(self.roles.sequential)
        inside = self._inside_sequential()
        placed: list[Token] = []
        remaining = list(tokens)
        done: set[str] = set()

        def ready(token: Token) -> bool:
            needs = bound_dependences(self.loops[token.iterator]) & set(self.loops)
            if not needs <= done:
                return False
            if token.iterator in inside and sequential:
                return False
            higher = any(t.iterator == token.iterator and t.level > token.level for t in remaining)
            return not higher

        while remaining or sequential:
            next_token = next((t for t in remaining if ready(t)), None)
            vector_next = next_token is not None and next_token.role == "p" and next_token.level < 2
            if sequential and (next_token is None or vector_next):
                name = sequential.pop(0)
                placed.append(Token(name, 0, "s"))
                done.add(name)
                continue
            if next_token is None:
                raise NotApplicable("loop bounds leave no legal order for this recipe")
            remaining.remove(next_token)
            placed.append(next_token)
            if next_token.level == 0:
                done.add(next_token.iterator)
        return placed

    def _inside_sequential(self) -> set[str]:
        """Independent loops originally inside a sequential one: they may not move out of it."""
        names: set[str] = set()
        seen = False
        for loop in self.band.loops:
            seen = seen or not loop.independent
            if seen and loop.independent:
                names.add(loop.iterator)
        return names

    def _parallel_position(self) -> int | None:
        if self.recipe.parallel == "none" or not self.parallel_allowed:
            return None
        wanted = "Rr" if self.recipe.parallel == "reduction" else "Pqp"
        for i, token in enumerate(self.tokens):
            size = extent(self.loops[token.iterator])
            if (
                token.role in wanted
                and (size is None or size > 1)
                and token.iterator != self.vector_point(token)
            ):
                if not safe_parallel(self.loops[token.iterator], self.buffers):
                    continue
                return i
        if self.recipe.parallel == "reduction":
            raise NotApplicable("no reduction loop to run in parallel")
        return None

    def vector_point(self, token: Token) -> str | None:
        """The iterator whose level-0 token is a vector, hence never a parallel loop."""
        return self.vector if token.level == 0 and self._register_tiled(token.iterator, token.role) else None

    def _accumulator_position(self) -> int | None:
        """Start of the last contiguous run of reduction loops (inside the parallel one)."""
        if not self.recipe.accumulate or self.reduction_from is None:
            return None
        position = max(i for i, t in enumerate(self.tokens) if t.is_reduction and not self._is_lane(t))
        while position > 0 and self.tokens[position - 1].is_reduction and position - 1 != self.parallel_at:
            position -= 1
        return position if position != self.parallel_at else None

    def _is_lane(self, token: Token) -> bool:
        return token.iterator == self.vector and token.role == "r" and token.level == 0

    # ------------------------------------------------------------------ construction

    def lower(self) -> tuple[Node, ...]:
        ranges = {lp.iterator: Range(lp.start, lp.stop, extent(lp), extent(lp)) for lp in self.band.loops}
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

        def renamed(expr: Expr) -> Expr:
            if isinstance(expr, Load) and expr.buffer in names:
                return Load(names[expr.buffer], expr.indices)
            return expr

        return tuple(map_node(s, renamed) for s in statements)

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
        token, size = self.tokens[position], self._tile_size(self.tokens[position])
        whole = ranges[token.iterator]
        name = f"{token.iterator}_t"
        exact = whole.size is not None and whole.size % size == 0
        end: Expr = Op("add", (Symbol(name), Const(size)))
        inner = Range(
            Symbol(name),
            simplify(end if exact else Op("min", (end, whole.hi))),
            size if exact else None,
            size,
        )
        body = self.next(position, {**ranges, token.iterator: inner}, statements)
        loop = self.loops[token.iterator]
        annotation = self._parallel_annotation(position)
        return (Loop(name, whole.lo, whole.hi, body, size, loop.independent, annotation, 2),)

    def _register_loops(
        self, position: int, ranges: Mapping[str, Range], statements: list[Statement]
    ) -> tuple[Node, ...]:
        token = self.tokens[position]
        whole = ranges[token.iterator]
        nodes: list[Node] = []
        start = whole.lo
        left = whole.size
        for size in self._cascade(token):
            if left == 0:
                break
            pieces = None if left is None else left // size
            if pieces == 0:
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
                nodes.append(Loop(name, start, stop, body, size, independent, annotation, int(size > 1)))
            start = stop
            left = None if left is None else left - (pieces or 0) * size
        return tuple(nodes)

    def _cascade(self, token: Token) -> list[int]:
        if token.role == "q":
            return [self.recipe.register_q, 1]
        vectors = self.recipe.register_p if token.role == "p" else max(1, self.recipe.register_r)
        return (
            sorted({vectors * self.lanes, self.lanes, 1}, reverse=True)
            if token.role == "p"
            else [vectors * self.lanes, 1]
        )

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
        return (Loop(token.iterator, whole.lo, whole.hi, body, 1, loop.independent, annotation),)

    def _point_annotation(self, token: Token, whole: Range) -> Annotation | None:
        if whole.fixed:
            return Annotation("vectorized" if token.iterator == self.vector else "unrolled")
        if token.role == "p":
            return Annotation("simd") if self.tokens[-1] == token else None
        if token.role == "r":
            prefetch = self.recipe.prefetch
            if self.recipe.unroll > 1:
                return Annotation("unrolled", factor=self.recipe.unroll, prefetch=prefetch)
            return Annotation("none", prefetch=prefetch) if prefetch else None
        return None

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
                annotation = Annotation("vectorized" if name == self.vector else "unrolled")
            elif name in self.roles.by_role["p"]:
                annotation = Annotation("simd")
            body = (Loop(name, whole.lo, whole.hi, body, annotation=annotation),)
        return body
