"""Traces as recipes: tiles by role, and what no recipe says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from benchmarks.trace_recipes import recipe_of_trace

from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm import TvmTask, apply_recipe, scheduled_nest, tasks_of
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.nests.analysis import extent
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.traces import TraceDocument, replay, trace_document

tvm = import_tvm()
from frontends.tvm import functions  # noqa: E402

from gnnperf.frontends.tvm.target import host_target  # noqa: E402
from gnnperf.retrieval.traces.proposals import context_of  # noqa: E402
from gnnperf.schedules.traces.document import anchor_tiles, sketch_of  # noqa: E402


def traced(thing: Any, tiles: list[list[int]], write_level: int | None = 1) -> tuple[TvmTask, TraceDocument]:
    """A task, and the trace of its sketch with these tiles, outermost loop first."""
    (task,) = tasks_of(thing, "f")
    context = context_of(task.module, host_target(2))
    designs = [trace_document(d, task.module) for d in context.generate_design_space()]
    design = next(d for d in designs if sketch_of(d).write_level == write_level and anchor_tiles(d))
    decisions = dict(design.decisions)
    for tile, factors in zip(anchor_tiles(design), tiles, strict=True):
        decisions[tile.position] = factors
    return task, replace(design, decisions=decisions)


TILES = [[2, 2, 4, 6], [1, 2, 2, 32], [4, 16]]


def test_tiles_of_a_product_by_role() -> None:
    task, document = traced(functions.matmul(), TILES)
    assert recipe_of_trace(document, task) == Recipe(
        tile_q=24, register_q=6, tile_p=64, register_p=2, tile_r=16, parallel="spatial"
    )


def test_what_a_recipe_becomes_in_tvm_has_the_tiles_of_the_trace() -> None:
    task, document = traced(functions.matmul(), TILES, write_level=None)
    context = context_of(task.module, host_target(2))
    before = sizes(scheduled_nest(replay(document, context).mod))
    after = sizes(scheduled_nest(apply_recipe(task, recipe_of_trace(document, task)).schedule.mod))
    assert before == [4, 2, *(4, 2, 6, 32), *(4, 4, 2, 16, 6, 32)]  # tiles, initial values, reduction
    assert after == [part for size in before for part in ([2, 16] if size == 32 else [size])]  # vectors


def sizes(nest: Any) -> list[int | None]:
    return [extent(lp) for lp in nest.loops()]


def test_loops_of_one_role_have_the_tile_of_the_longest() -> None:
    tiles = [[1, 1, 1, 1], [7, 1, 2, 1], [2, 1, 1, 7], [1, 1, 1, 12], [3, 1], [1, 3], [2, 4]]
    task, document = traced(functions.conv2d(), tiles)
    found = recipe_of_trace(document, task)
    assert (found.tile_P, found.tile_q, found.register_q) == (2, 7, 7)
    assert (found.tile_p, found.register_p) == (0, 1)  # twelve channels: less than a vector, all of them
    assert (found.tile_R, found.tile_r) == (1, 4)


def test_what_no_recipe_says_is_refused() -> None:
    task, document = traced(functions.matmul(), [[2, 2, 4, 6], [4, 4, 4, 2], [4, 16]])
    with pytest.raises(NotApplicable, match="2 points, a vector has 16"):
        recipe_of_trace(document, task)
    task, document = traced(functions.matmul(), TILES)
    note = ("Annotate", [document.instructions[0][3][0], '"vnni"'], ["meta_schedule.auto_tensorize"], [])
    with pytest.raises(NotApplicable, match="the instruction vnni"):
        recipe_of_trace(replace(document, instructions=(*document.instructions, note)), task)
    with pytest.raises(NotApplicable, match="every loop"):
        recipe_of_trace(replace(document, loops="SSSSRRR"), tasks_of(functions.conv2d(), "f")[0])


def test_blocks_without_tiles_are_rows() -> None:
    (task,) = tasks_of(functions.stencil(), "f")
    (design, *_) = context_of(task.module, host_target(2)).generate_design_space()
    found = recipe_of_trace(trace_document(design, task.module), task)
    assert (found.order, found.parallel, found.fuse) == ("row", "spatial", 0)
