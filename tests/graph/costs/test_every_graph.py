"""Costs are finite numbers whatever the graph: sparse, sequential, empty, of nothing but registers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from graph.graphs import tensorized
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import EXAMPLES, accumulate, array, assign, load, loop, nest, op
from nests.random_nests import random_nests
from nests.random_programs import random_program

from gnnperf.errors import NotApplicable
from gnnperf.frontends.dace import load_kernel
from gnnperf.graph import ProgramGraph, encode
from gnnperf.graph.costs import COST_FIELDS, GraphArrays, GraphCosts
from gnnperf.nests import LoopNest, nest_graph
from gnnperf.schedules.recipes import DEFAULTS, Recipe
from gnnperf.schedules.recipes.apply import apply

KERNELS = Path(__file__).parents[2] / "e2e" / "kernels_small.py"
SIZES = {
    "scores": {"N": 60, "M": 50, "K": 40},
    "chain": {"N": 30, "M": 20, "K": 40},
    "power": {"N": 30, "STEPS": 3},
    "spmm": {"N": 30, "M": 20, "K": 16, "NNZ": 90, "empty": 0},
    "no_nest": {},
}

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def scheduled(found: LoopNest, *recipes: Recipe) -> Iterator[LoopNest]:
    """The nest, and what recipes make of it."""
    yield found
    for recipe in recipes or DEFAULTS:
        with contextlib.suppress(NotApplicable):
            yield apply(recipe, found)


def check(*graphs: ProgramGraph) -> None:
    arrays = GraphArrays.of([encode(graph) for graph in graphs])
    for threads in (1, 2, 12):
        costs = GraphCosts(arrays, threads)
        assert np.isfinite(costs.node_rows()).all()


def registers_only() -> LoopNest:
    acc = array("acc", transient=True, scope="local")
    return nest("registers", [acc], loop("i", 4, assign(load("acc"), op("mul", load("acc"), 2.0))))


def empty_loop() -> LoopNest:
    return nest("empty", [array("y", 8)], loop("i", 0, assign(load("y", "i"), 1.0)))


def reduction_over_nothing() -> LoopNest:
    return nest("nothing", [array("s"), array("x", 8)], loop("i", 0, accumulate(load("s"), load("x", "i"))))


def no_statement() -> LoopNest:
    return nest("bare", [], loop("i", 4, loop("j", 5)))


def while_loop() -> LoopNest:
    body = assign(load("x"), op("mul", load("x"), 0.5))
    condition = op("gt", load("x"), 1.0)
    return nest("while", [array("x")], loop("i", 1 << 62, body, independent=False, condition=condition))


def no_loop() -> LoopNest:
    return nest("scalar", [array("x")], assign(load("x"), 1.0))


ODD = (registers_only, empty_loop, reduction_over_nothing, no_statement, while_loop, no_loop)


@pytest.mark.parametrize("make", [*EXAMPLES.values(), *ODD], ids=[*EXAMPLES, *(m.__name__ for m in ODD)])
def test_examples(make) -> None:  # type: ignore[no-untyped-def]
    check(*map(nest_graph, scheduled(make())))


def test_none_and_instructions() -> None:
    check()
    check(tensorized(), ProgramGraph((), (), {}))
    assert GraphCosts(GraphArrays.of([]), 2).node_rows().shape == (0, len(COST_FIELDS))


@given(random_nests(), st.sampled_from(DEFAULTS))
def test_random_nests(found: LoopNest, recipe: Recipe) -> None:
    check(*map(nest_graph, scheduled(found, recipe)))


@given(st.integers(0, 1 << 30), st.sampled_from(DEFAULTS))
def test_random_programs(seed: int, recipe: Recipe) -> None:
    check(*map(nest_graph, scheduled(random_program(Random(seed)).nest(), recipe)))


@pytest.mark.parametrize("trips", [None, 0.0, 0.3, 1e6])
def test_trip_counts(trips: float | None) -> None:
    """Known, fractional, none, or not known."""
    for found in scheduled(EXAMPLES["spmm"]()):
        counts = {} if trips is None else {lp.iterator: trips for lp in found.loops()}
        check(nest_graph(found, counts))


@pytest.mark.parametrize("name", SIZES)
def test_real_kernels(name: str) -> None:
    inputs = f"{KERNELS}:csr" if name == "spmm" else None
    for unit in load_kernel(f"{KERNELS}:{name}", SIZES[name], inputs).units:
        check(*map(nest_graph, scheduled(unit.nest)))
