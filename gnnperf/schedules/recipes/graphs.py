"""Graphs of scheduled nests: what a recipe makes of a nest, as a network sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.errors import NotApplicable
from gnnperf.graph import ProgramGraph
from gnnperf.nests import LoopNest, nest_graph
from gnnperf.nests.trip_counts import with_trip_counts
from gnnperf.schedules.recipes.apply import apply_combined, combined
from gnnperf.schedules.recipes.recipe import Recipe

NOT_MEASURED: Mapping[str, float] = MappingProxyType({})


def scheduled_graphs(
    nest: LoopNest,
    recipes: Sequence[Recipe],
    trip_counts: Mapping[str, float] = NOT_MEASURED,
    vectors: VectorUnit = AVX512,
) -> list[ProgramGraph | None]:
    """The graphs of `apply(recipe, nest, vectors)` for recipes of one nest; None where one does not fit.

    trip_counts: measured mean trip counts of loops of `nest` whose bounds depend on data, by iterator, as
    `measured_trip_counts` finds them; what a recipe makes of such a loop (tiles, their points, what is left
    over) gets extents that follow from them.
    Recipes that come to the same scheduled nest share one graph object.
    """
    nest = with_trip_counts(nest, trip_counts)
    combinations = {how: combined(how, nest) for how in {recipe.combine for recipe in recipes}}
    known: dict[Any, ProgramGraph] = {}
    graphs: list[ProgramGraph | None] = []
    for recipe in recipes:
        try:
            scheduled = apply_combined(recipe, combinations[recipe.combine], vectors)
        except NotApplicable:
            graphs.append(None)
            continue
        key = scheduled.body, tuple(scheduled.buffers.items())
        if key not in known:
            known[key] = nest_graph(scheduled)
        graphs.append(known[key])
    return graphs
