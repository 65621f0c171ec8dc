"""Scheduled programs for tests of the networks that read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from helpers.nests import RECIPES, small_nest

from gnnperf.nests import LoopNest, nest_graph
from gnnperf.nn import ScheduledProgram, scheduled_programs
from gnnperf.schedules.recipes import Recipe

FITTING = [RECIPES[name] for name in ("tile", "stream", "wrong")]
NESTS = (small_nest(64, 32), small_nest(48, 96, reduction=True), small_nest(8, 24, operation="exp"))


def programs_of(
    nests: Iterable[LoopNest] = NESTS, recipes: Sequence[Recipe] = FITTING
) -> list[ScheduledProgram]:
    """What recipes that fit make of some nests, nest by nest."""
    found = [p for nest in nests for p in scheduled_programs(nest, nest_graph(nest), recipes)]
    assert None not in found
    return [program for program in found if program is not None]


def shuffled(program: ScheduledProgram, seed: int) -> ScheduledProgram:
    """The same program, the nodes of its graph in another order."""
    graph = program.graph
    order = np.random.default_rng(seed).permutation(len(graph.node_kind))
    place = np.argsort(order)
    moved = replace(
        graph,
        node_kind=graph.node_kind[order],
        node_features=graph.node_features[order],
        edge_index=place[graph.edge_index],
    )
    return program._replace(graph=moved, node_costs=program.node_costs[order])
