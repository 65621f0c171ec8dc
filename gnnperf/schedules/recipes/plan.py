"""Plan the schedule of one band: which loops are split, in which order they run, what is parallel.

The plan is a list of tokens, outermost first: tile loops (level 2), register-tile loops (level 1) and
points (level 0) of each iterator. `lower.py` builds the loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.errors import NotApplicable
from gnnperf.nests.analysis import Band, bound_dependences, extent, is_data_dependent, safe_parallel
from gnnperf.nests.ir import Buffer
from gnnperf.nests.names import Names
from gnnperf.schedules.recipes.recipe import Recipe
from gnnperf.schedules.recipes.roles import Roles, assign_roles
from gnnperf.schedules.recipes.vectors import guarded_loads, lanes, vectorizable


@dataclass(frozen=True)
class Token:
    iterator: str
    level: int
    role: str

    @property
    def is_reduction(self) -> bool:
        return self.role in "Rr"


@dataclass
class BandPlan:
    """`parallel_at`, `reduction_from`, `accumulate_at`: positions in `tokens`."""

    band: Band
    recipe: Recipe
    buffers: dict[str, Buffer]
    own: frozenset[str]
    """Local buffers of one iteration of the band."""
    parallel_allowed: bool
    names: Names
    vectors: VectorUnit = AVX512
    roles: Roles = field(init=False)
    tokens: list[Token] = field(init=False)
    lanes: int = field(init=False)
    vector: str | None = field(init=False)
    vector_role: str = field(init=False, default="none")

    def __post_init__(self) -> None:
        self.roles = assign_roles(self.band, self.buffers, self.own)
        self.lanes = max((lanes(s, self.buffers, self.vectors) for s in self.band.statements), default=1)
        self.loops = {lp.iterator: lp for lp in self.band.loops}
        self.guarded = guarded_loads(self.band, self.buffers)
        self.vector = self._vector_iterator()
        self.tokens = self._lanes_innermost(self._legal_order(self._existing_tokens()))
        self.parallel_at = self._parallel_position()
        self.reduction_from = next((i for i, t in enumerate(self.tokens) if t.is_reduction), None)
        self.accumulate_at = self._accumulator_position()

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

    def tile_size(self, token: Token) -> int:
        """Iterations of a cache tile."""
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
                return self._row_of(i)
        if self.recipe.parallel == "reduction":
            raise NotApplicable("no reduction loop to run in parallel")
        return None

    def _row_of(self, position: int) -> int:
        """Threads share rows, not the few entries of one: the loop that the bounds of a data-dependent loop
        belong to, where its iterations may run in parallel."""
        loop = self.loops[self.tokens[position].iterator]
        if not is_data_dependent(loop):
            return position
        rows = bound_dependences(loop)
        owners = (i for i, t in enumerate(self.tokens[:position]) if t.iterator in rows)
        return next(
            (i for i in owners if safe_parallel(self.loops[self.tokens[i].iterator], self.buffers)), position
        )

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
