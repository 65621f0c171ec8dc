"""What was found on DaCe nests, for TVM tasks: recipes of the nearest nests, as schedules of the task.

Both frontends make the same graph of the same loops, so that a task may find its nearest neighbours among
nests that only DaCe programs had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm import TvmTask, apply_recipe
from gnnperf.retrieval.ranking import RecipeCandidate, rank
from gnnperf.retrieval.traces.candidates import TraceCandidate, of_schedule
from gnnperf.retrieval.traces.ranking import GraphScorer, scored
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.traces import program_key
from gnnperf.store import Neighbour

LOOKED_AT, WANTED = 64, 8
"""Recipes, the most promising first, and how many of them that TVM can express are enough."""


@dataclass(frozen=True)
class LentRecipe:
    """A recipe as a schedule of a task. dropped: its fields that TVM has no word for."""

    candidate: RecipeCandidate
    schedule: Any
    dropped: tuple[str, ...]


@dataclass
class Expressible:
    """The recipes that TVM can express, each as another program. refused: how often for which reason the
    others are not."""

    found: list[LentRecipe] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


def expressible(
    task: TvmTask, recipes: Iterable[RecipeCandidate], count: int, vectors: VectorUnit = AVX512
) -> Expressible:
    """The first `count` of the recipes that are schedules of a task. vectors: of the machine."""
    result, seen = Expressible(), set[int]()
    for candidate in recipes:
        if len(result.found) == count:
            break
        try:
            expressed = apply_recipe(task, candidate.schedule, vectors)
        except NotApplicable as reason:
            result.refused[str(reason)] += 1
            continue
        key = program_key(expressed.schedule.mod)
        if key not in seen:
            seen.add(key)
            result.found.append(LentRecipe(candidate, expressed.schedule, expressed.dropped))
    return result


def lent(
    task: TvmTask,
    target: Any,
    neighbours: Sequence[Neighbour],
    predict: Callable[[Sequence[Recipe]], NDArray[np.float32]],
    model: GraphScorer,
    vectors: VectorUnit = AVX512,
) -> list[TraceCandidate]:
    """The nests' recipes as candidates for a task, in the order in which they would be tried on a nest.

    predict: the network on the task's nest. model: what scores them beside transferred traces.
    vectors: of the machine.
    """
    recipes = rank(neighbours, LOOKED_AT, predict)
    return scored([*_candidates(task, target, expressible(task, recipes, WANTED, vectors).found)], model)


def _candidates(task: TvmTask, target: Any, found: Iterable[LentRecipe]) -> Iterator[TraceCandidate]:
    for turn, one in enumerate(found):
        candidate = of_schedule(
            one.schedule,
            task.module,
            target,
            policy=f"DaCe recipe: {one.candidate.schedule.describe()}",
            neighbour=one.candidate.neighbour,
            neighbour_kernel=one.candidate.neighbour_kernel,
            distance=one.candidate.distance,
            turn=turn,
        )
        if candidate.has_graph:
            yield candidate
