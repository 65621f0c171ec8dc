"""Scheduled programs as a network reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph import EncodedGraph, GraphBatch, ProgramGraph, collate, encode
from gnnperf.graph.costs import GraphArrays, GraphCosts
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import Recipe, schedule_facts, scheduled_graphs
from gnnperf.schedules.recipes.graphs import NOT_MEASURED

THREADS = 2
"""That parallel loops are shared by in cost fields: of the machines that the corpora were measured on. A
network learns what two threads do; shares of more would be outside of what it has seen."""


class ScheduledProgram(NamedTuple):
    """What a schedule makes of a program.

    graph: of the scheduled program, n nodes. node_costs: f32[n, C], `GraphCosts.node_rows`. facts: f32[F],
    in the order of `gnnperf.schedules.recipes.fact_fields`, NaN where absent.
    """

    graph: EncodedGraph
    node_costs: Float32[np.ndarray, "n C"]
    facts: Float32[np.ndarray, " F"]


def scheduled_programs(
    nest: LoopNest,
    graph: ProgramGraph,
    recipes: Sequence[Recipe],
    trip_counts: Mapping[str, float] = NOT_MEASURED,
    vectors: VectorUnit = AVX512,
) -> list[ScheduledProgram | None]:
    """What each recipe makes of a nest; None where it does not fit.

    graph: of the nest itself. trip_counts: as of `gnnperf.schedules.recipes.scheduled_graphs`. vectors:
    of the machine that runs it. Recipes that come to the same scheduled nest share its arrays.
    """
    found = scheduled_graphs(nest, recipes, trip_counts, vectors)
    different = list({id(g): g for g in found if g is not None}.values())
    if not different:
        return [None] * len(recipes)
    facts = schedule_facts(graph, recipes, vectors)
    encoded = [encode(g) for g in different]
    costs = GraphCosts(GraphArrays.of(encoded), THREADS, vectors).node_rows()
    ends = np.cumsum([len(g.node_kind) for g in encoded], dtype=np.int64)
    parts = dict(zip(map(id, different), zip(encoded, np.split(costs, ends[:-1]), strict=True), strict=True))
    return [
        None if g is None else ScheduledProgram(*parts[id(g)], row)
        for g, row in zip(found, facts, strict=True)
    ]


def collate_programs(programs: Sequence[ScheduledProgram]) -> tuple[GraphBatch, Tensor, Tensor]:
    """b programs, at least one: their graphs, node costs f32[n, C] and facts f32[b, F]."""
    return (
        collate([program.graph for program in programs]),
        torch.from_numpy(np.concatenate([program.node_costs for program in programs])),
        torch.from_numpy(np.stack([program.facts for program in programs])),
    )
