"""What recipes make of a nest, as a network reads it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from helpers.nests import RECIPES, small_nest
from helpers.scheduled import FITTING, programs_of
from nests.examples import spmm

from gnnperf.graph import encode
from gnnperf.graph.costs import COST_FIELDS, GraphArrays, GraphCosts
from gnnperf.nests import nest_graph
from gnnperf.nn import collate_programs, scheduled_programs
from gnnperf.nn.scheduled import THREADS
from gnnperf.schedules.recipes import Recipe, apply, schedule_facts

NEST = small_nest(64, 32, reduction=True)
GRAPH = nest_graph(NEST)


def test_each_is_the_scheduled_graph_with_its_costs_and_facts() -> None:
    for recipe in FITTING:
        (program,) = programs_of([NEST], [recipe])
        expected = encode(nest_graph(apply(recipe, NEST)))
        np.testing.assert_array_equal(program.graph.node_features, expected.node_features)
        np.testing.assert_array_equal(program.graph.edge_index, expected.edge_index)
        costs = GraphCosts(GraphArrays.of([expected]), THREADS).node_rows()
        np.testing.assert_array_equal(program.node_costs, costs)
        np.testing.assert_array_equal(program.facts, schedule_facts(GRAPH, [recipe])[0])


def test_a_program_does_not_depend_on_those_made_beside_it() -> None:
    for recipe, program in zip(FITTING, programs_of([NEST]), strict=True):
        (alone,) = programs_of([NEST], [recipe])
        np.testing.assert_array_equal(program.facts, alone.facts)
        np.testing.assert_array_equal(program.node_costs, alone.node_costs)


def test_a_recipe_that_does_not_fit_makes_nothing() -> None:
    tile, unfit = RECIPES["tile"], RECIPES["unfit"]
    made = scheduled_programs(NEST, GRAPH, [unfit, tile, unfit])
    assert [program is None for program in made] == [True, False, True]
    assert scheduled_programs(NEST, GRAPH, [unfit]) == [None]
    assert scheduled_programs(NEST, GRAPH, []) == []


def test_recipes_that_come_to_the_same_share_arrays_but_not_facts() -> None:
    stream = RECIPES["stream"]
    same = replace(stream, prefetch=8)  # there is nothing to prefetch
    one, other, unlike = scheduled_programs(NEST, GRAPH, [stream, same, RECIPES["tile"]])
    assert one is not None and other is not None and unlike is not None
    assert one.graph is other.graph
    assert np.shares_memory(one.node_costs, other.node_costs)
    assert (one.facts != other.facts).any()
    assert unlike.graph is not one.graph
    assert len(unlike.node_costs) == len(unlike.graph.node_kind)


def test_measured_trip_counts_are_in_graph_and_costs() -> None:
    """Of a matrix whose rows are short, or long; the static graph does not say which."""
    nest = spmm()
    short, long = (
        scheduled_programs(nest, nest_graph(nest, trips), [Recipe()], trips)[0]
        for trips in ({"p": 2.0}, {"p": 200.0})
    )
    assert short is not None and long is not None
    assert short.node_costs.shape == long.node_costs.shape
    assert (short.graph.node_features != long.graph.node_features).any()
    instances = [field.name for field in COST_FIELDS].index("instances")
    assert short.node_costs[:, instances].max() < long.node_costs[:, instances].max()


def test_programs_side_by_side() -> None:
    programs = programs_of()
    graphs, node_costs, facts = collate_programs(programs)
    sizes = [len(program.graph.node_kind) for program in programs]
    assert graphs.ptr.diff().tolist() == sizes
    assert node_costs.shape == (sum(sizes), len(COST_FIELDS))
    assert facts.shape == (len(programs), len(programs[0].facts))
    np.testing.assert_array_equal(node_costs[graphs.batch == 4], programs[4].node_costs)
