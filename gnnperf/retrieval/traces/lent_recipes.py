"""What was found on DaCe nests, for TVM tasks: recipes of the nearest nests, as schedules of the task.

Both frontends make the same graph of the same loops, so that a task may find its nearest neighbours among
nests that only DaCe programs had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm import TvmTask, apply_recipe
from gnnperf.retrieval.ranking import rank
from gnnperf.retrieval.traces.candidates import TraceCandidate, of_schedule
from gnnperf.retrieval.traces.ranking import GraphScorer, scored
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.traces import program_key
from gnnperf.store import Neighbour

LOOKED_AT, WANTED = 64, 8
"""Recipes, the most promising first, and how many of them that TVM can express are enough."""


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
    found, seen = list[TraceCandidate](), set[int]()
    for recipe in rank(neighbours, LOOKED_AT, predict):
        if len(seen) == WANTED:
            break
        try:
            schedule = apply_recipe(task, recipe.schedule, vectors)
        except NotApplicable:
            continue
        if (key := program_key(schedule.mod)) in seen:
            continue
        candidate = of_schedule(
            schedule,
            task.module,
            target,
            policy=f"DaCe recipe: {recipe.schedule.describe()}",
            neighbour=recipe.neighbour,
            neighbour_kernel=recipe.neighbour_kernel,
            distance=recipe.distance,
            turn=len(seen),
        )
        seen.add(key)
        if candidate.has_graph:
            found.append(candidate)
    return scored(found, model)
