"""Candidates for a task, in the order to try them; here: recipes of like nests."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from gnnperf.backends.base import Tried
from gnnperf.devices import DeviceSpec
from gnnperf.retrieval.neighbours import nearest
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.ranking import LOOKED_AT, RecipeCandidate, rank
from gnnperf.retrieval.scheduled import OfNest, scores_of
from gnnperf.schedules.recipes import Recipe, copying_recipes, library_recipes, time_recipes
from gnnperf.store import Store

if TYPE_CHECKING:
    from gnnperf.nn import Bundle

T = TypeVar("T")
LIBRARY, TIME, COPIES, PLAIN = "a library", "tiles of time", "second copies", "a plain schedule"
"""Stand for the neighbour of a schedule that none has, or that is not tried for its sake."""
FAR = 0.15
"""Distance from which on the nearest nest says little."""
FEW_ROWS = 64
"""At least, of tiles that calls of a library are made for."""


@dataclass
class Stages:
    """seconds: wall time by stage, without that of stages inside."""

    seconds: dict[str, float] = field(default_factory=dict)
    _inside: list[float] = field(default_factory=list, repr=False)

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        """What the work gives; its time is added to the stage's."""
        started = time.monotonic()
        self._inside.append(0.0)
        try:
            return work()
        finally:
            took_s = time.monotonic() - started
            self.seconds[stage] = self.seconds.get(stage, 0.0) + took_s - self._inside.pop()
            if self._inside:
                self._inside[-1] += took_s


class Proposer(Protocol):
    """Finds candidates for tasks of one kind.

    rounds: shares of the candidates to measure after which the rest is ranked again. stages: where the time
    goes.
    """

    rounds: Sequence[float]
    stages: Stages

    @property
    def adopted(self) -> Callable[[Query, Any], Any] | None:
        """Gives what was measured of a task as a candidate for a query whose task has the same graph; raises
        NotApplicable. None where every task is measured by itself."""

    def ask(self, query: Query, vector: NDArray[np.float32], k: int) -> None:
        """Fill a query's neighbours, and its candidates in the order to try them; `reason` where there are
        none. vector: f32[d], of the task's graph. k: how many will be measured."""

    def first(self, candidates: Sequence[Any], count: int) -> Sequence[Any]:
        """The order for the first round, which measures `count`."""

    def again(self, query: Query, left: Sequence[Any], tried: Sequence[Tried]) -> Sequence[Any]:
        """What is left, and what is made of the fastest, in the order to try it once some were measured."""


@dataclass
class RecipeProposer:
    """Recipes of the nearest nests, ranked by what neighbours measured and by the network.

    neighbours: nests consulted. exclude: digests of nests that are not consulted. What does not fit or lowers
    to the same code as another candidate gives way to the next.
    """

    bundle: Bundle
    stores: Sequence[Store]
    device: DeviceSpec
    neighbours: int = 48
    exclude: Collection[str] = ()
    rounds: Sequence[float] = (1.0,)
    stages: Stages = field(default_factory=Stages)
    adopted: ClassVar[None] = None

    def ask(self, query: Query, vector: NDArray[np.float32], k: int) -> None:
        def search() -> None:
            query.neighbours = nearest(
                self.stores,
                vector,
                self.neighbours,
                self.bundle.encoder_id,
                self.device.fingerprint,
                self.exclude,
            )
            predict = partial(scores_of, self.bundle, cast(OfNest, query.task), vectors=self.device.vectors)
            found = rank(query.neighbours, LOOKED_AT, predict)
            query.candidates = _with_rules(found, query, k) if found else []

        self.stages.timed("search", search)
        query.reason = self._doubt(query)

    def _doubt(self, query: Query) -> str:
        if not query.neighbours:
            return f"nothing was measured on a {self.device.fingerprint} yet; run `gnnperf collect` here"
        return "" if query.candidates else "no schedule of a neighbour fits"

    def first(self, candidates: Sequence[Any], count: int) -> Sequence[Any]:
        return candidates

    def again(self, query: Query, left: Sequence[Any], tried: Sequence[Tried]) -> Sequence[Any]:
        return left


def _with_rules(ranked: Sequence[RecipeCandidate], query: Query, k: int) -> list[RecipeCandidate]:
    """Calls of libraries, and steps of time in tiles or from copy to copy, as the last of the first k, where
    the nest is what they are for: of such nests there may be none among the neighbours. Where none is near,
    what is right for most is one of the k, too."""
    nest = cast(OfNest, query.task).nest
    far = all(near.distance > FAR for near in query.neighbours)
    calls, copying = library_recipes(nest), copying_recipes(nest)
    moved: list[RecipeCandidate] = []
    for name, recipes, is_one in (
        (LIBRARY, calls[:1], lambda recipe: bool(recipe.library)),
        (LIBRARY, calls[1:], lambda recipe: bool(recipe.library) and recipe.fuse >= FEW_ROWS),
        (TIME, time_recipes(nest, ranked[0].schedule), lambda recipe: bool(recipe.time_tile)),
        (COPIES, copying, lambda recipe: recipe in copying),
        (PLAIN, [Recipe()] if far else [], lambda recipe: recipe == Recipe()),
    ):
        marked = [c for c in ranked if is_one(c.schedule)]
        first = [*ranked[: max(0, k - len(moved))], *moved]
        if recipes and not any(c in first for c in marked) and not _was_measured(query, is_one):
            ruled = [RecipeCandidate(r, 0.0, query.graph.digest, name, 0.0) for r in recipes]
            moved += marked[:1] or ruled[: max(1, k // 2)]
    rest = [c for c in ranked if c not in moved]
    at = max(0, k - len(moved))
    return [*rest[:at], *moved, *rest[at:]]


def _was_measured(query: Query, is_one: Callable[[Recipe], bool]) -> bool:
    """Whether this very nest was, with such a recipe: the ranking knows better then."""
    return any(
        record.schedule_kind == Recipe.kind and is_one(Recipe.from_json(record.schedule))
        for near in query.neighbours
        if near.nest.digest == query.graph.digest
        for record in near.records
    )
