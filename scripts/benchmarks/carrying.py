"""What the stores have for a nest, in the words of the other frontend."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.trace_recipes import recipe_of_trace
from gnnperf.devices import describe_host
from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.vector_math import vector_math
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.retrieval.ranking import RecipeCandidate
from gnnperf.retrieval.traces.lent_recipes import expressible
from gnnperf.retrieval.traces.proposals import best_traces
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.traces import TraceDocument
from gnnperf.store import Neighbour

TRACES = 3
"""Taken from a neighbour, its fastest first."""
REASON = 120
"""Characters of a refusal that are kept."""


@dataclass
class Carried:
    """schedules: that the other frontend takes, and what they are there, in the order to try them. lenders:
    the kernels they were found on. refused: how often which reason was given for those it does not take.
    dropped: how often which field of a recipe has no counterpart."""

    schedules: list[tuple[Recipe, Any]] = field(default_factory=list)
    lenders: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


def to_tvm(task: TvmTask, recipes: Sequence[RecipeCandidate], k: int) -> Carried:
    """The first k recipes that TVM can express, each as another module."""
    result = expressible(task, recipes, k, describe_host().vectors)
    carried = Carried(lenders=[one.candidate.neighbour_kernel for one in result.found])
    for one in result.found:
        carried.schedules.append((one.candidate.schedule, vector_math(one.schedule.mod)))
        carried.dropped.update(one.dropped)
    for reason, times in result.refused.items():
        carried.refused[_short(reason)] += times
    return carried


def to_dace(neighbours: Sequence[Neighbour], limit: int) -> Carried:
    """The neighbours' best traces as recipes, nearest first, until there are `limit` different ones."""
    found, seen = Carried(), set[Recipe]()
    for neighbour in neighbours:
        for text, task in _traces(neighbour):
            if len(seen) == limit:
                return found
            try:
                recipe = recipe_of_trace(TraceDocument.from_json(text), task)
            except NotApplicable as reason:
                found.refused[_short(str(reason))] += 1
                continue
            if recipe not in seen:
                seen.add(recipe)
                found.schedules.append((recipe, recipe))
                found.lenders.append(neighbour.nest.kernel)
    return found


def _traces(neighbour: Neighbour) -> Iterator[tuple[str, TvmTask]]:
    """Traces with the task that they were made for; those of unknown workloads are passed over."""
    tasks: dict[str, TvmTask] = {}
    for record in best_traces(neighbour.records, TRACES):
        about = json.loads(record.provenance).get("workload")
        if about is None:
            continue
        workload = TvmWorkload(about["kind"], about["params"])
        if workload.name not in tasks:
            tasks[workload.name] = TvmTask(workload.name, workload.build())
        yield record.schedule, tasks[workload.name]


def _short(reason: str) -> str:
    return reason[:REASON]
