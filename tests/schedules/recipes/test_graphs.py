"""Graphs of scheduled nests: those of `apply`, shared where recipes come to the same, with measured trips."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from nests import examples
from nests.examples import EXAMPLES

from gnnperf.devices import VectorUnit
from gnnperf.errors import NotApplicable
from gnnperf.graph import ProgramGraph
from gnnperf.nests import LoopNest, nest_graph
from gnnperf.schedules.recipes import (
    DEFAULTS,
    Recipe,
    apply,
    random_recipe,
    scheduled_graphs,
)
from gnnperf.schedules.recipes.graphs import NOT_MEASURED

REDUCED_BY_THREADS = Recipe(order="dot", parallel="reduction")
"""Does not fit a nest without reductions."""


def scheduled_graph(
    recipe: Recipe, nest: LoopNest, trip_counts: Mapping[str, float] = NOT_MEASURED, **options: VectorUnit
) -> ProgramGraph:
    (graph,) = scheduled_graphs(nest, [recipe], trip_counts, **options)
    assert graph is not None
    return graph


def loops(graph: ProgramGraph) -> list[tuple[str, object, object, object]]:
    """(iterator, extent, iterations, annotation) of every loop."""
    nodes = (n for n in graph.nodes if n.kind == "loop")
    return [(n.label, n["extent"], n["iterations"], n["annotation"]) for n in nodes]


@pytest.mark.parametrize("name", EXAMPLES)
def test_graphs_are_those_of_the_scheduled_nest(name: str) -> None:
    nest, rng = EXAMPLES[name](), Random(name)
    recipes = [*DEFAULTS, *(random_recipe(nest, rng) for _ in range(10))]
    for recipe, graph in zip(recipes, scheduled_graphs(nest, recipes), strict=True):
        try:
            expected = nest_graph(apply(recipe, nest))
        except NotApplicable:
            assert graph is None
            continue
        assert graph == expected == scheduled_graph(recipe, nest)


def test_where_a_recipe_does_not_fit_there_is_no_graph() -> None:
    nest = examples.transpose()
    with pytest.raises(NotApplicable):
        apply(REDUCED_BY_THREADS, nest)
    first, second = scheduled_graphs(nest, [REDUCED_BY_THREADS, Recipe()])
    assert first is None and second is not None


def test_recipes_that_come_to_the_same_nest_share_a_graph() -> None:
    nest = examples.transpose()
    alike = [Recipe(order="row"), Recipe(order="row", unroll=4), Recipe(order="row", chunk=4)]
    plain, unrolled, chunked = scheduled_graphs(nest, alike)
    assert plain is unrolled and plain is not chunked


def test_tiles_of_a_matrix_product() -> None:
    """C[64, 96] += A[64, 32] B[32, 96] of doubles in tiles of 16 rows, 4 vectors of 8 at a time."""
    recipe = Recipe(order="row", tile_q=16, register_p=4, accumulate=False, chunk=2)
    graph = scheduled_graph(recipe, examples.gemm(64, 96, 32))
    assert loops(graph) == [
        ("i_t", 4, 4, "parallel"),
        ("i", 16, 64, "none"),
        ("j", 96, 64 * 96, "simd"),  # initial values
        ("k", 32, 64 * 32, "none"),
        ("j_r", 3, 64 * 32 * 3, "none"),
        ("j", 32, 64 * 32 * 96, "vectorized"),
    ]
    tile = next(n for n in graph.nodes if n.label == "i_t")
    assert (tile["step"], tile["tile_level"], tile["omp_schedule"], tile["chunk"]) == (16, 2, "static", 2)
    assert graph.values["total_flops"] == 2 * 64 * 96 * 32


def test_vectors_are_as_wide_as_the_registers_of_the_machine() -> None:
    """The same product in 4 vectors of 4 doubles."""
    recipe = Recipe(order="row", register_p=4, accumulate=False)
    graph = scheduled_graph(recipe, examples.gemm(64, 96, 32), vectors=VectorUnit(32, 16))
    assert loops(graph)[-2:] == [
        ("j_r", 6, 64 * 32 * 6, "none"),
        ("j", 16, 64 * 32 * 96, "vectorized"),
    ]


def test_measured_trips_of_vectors_along_rows() -> None:
    """Rows of 70.5 elements: two register tiles of 4 vectors of 8, then 6.5 elements one by one."""
    recipe = Recipe(order="dot", vector="r", register_r=4)
    graph = scheduled_graph(recipe, examples.spmm(rows=500, features=1), {"p": 70.5})
    along = [lp for lp in loops(graph) if lp[0].startswith("p")]
    assert along == [
        ("p_r", 2, 1000, "none"),
        ("p", 32, 32000, "vectorized"),
        ("p_r", 6.5, 3250, "none"),
    ]


@pytest.mark.parametrize(("trips", "tiles", "points"), [(640.0, 2.5, 256), (10.5, 1, 10.5)])
def test_measured_trips_of_tiles(trips: float, tiles: float, points: float) -> None:
    """Threads that share a sum take tiles of 256 elements of it."""
    recipe = Recipe(order="dot", parallel="reduction", vector="none")
    graph = scheduled_graph(recipe, examples.spmm(rows=500, features=1), {"p": trips})
    along = [(label, extent) for label, extent, _, _ in loops(graph) if label.startswith("p")]
    assert along == [("p_t", tiles), ("p", points)]
    instances = sum(n["instances"] for n in graph.nodes if n.kind == "compute" and n["reduction"] != "none")
    assert instances >= 500 * trips


def test_loops_that_were_not_measured_are_unknown() -> None:
    graph = scheduled_graph(Recipe(order="row"), examples.spmm())
    unknown = [n for n in graph.nodes if n.kind == "loop" and n["extent_unknown"]]
    assert [n.label for n in unknown] == ["p"]
