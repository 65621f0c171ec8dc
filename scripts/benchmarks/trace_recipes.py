"""Traces as recipes: the tiles that MetaSchedule found for a block, in the roles that its loops play.

A trace tiles its anchor as SSRSRS: two levels of spatial tiles around the reduction, a level between its two
halves, and the points. Recipes have the same levels in their `blocked` order: cache tiles, reduction tiles,
register tiles, points. Loops of one role share a tile in a recipe: the longest of them decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnperf.devices import AVX512
from gnnperf.errors import NotApplicable, UnsupportedConstruct
from gnnperf.frontends.tvm.bands import TirBlock, program_of
from gnnperf.frontends.tvm.tasks import TvmTask
from gnnperf.nests import Buffer
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.recipes.roles import Roles, assign_roles
from gnnperf.schedules.recipes.vectors import lanes
from gnnperf.schedules.traces.document import Tile, TraceDocument, anchor_tiles, places, sketch_of
from gnnperf.schedules.traces.roles import roles_of

STRUCTURE = "SSRSRS"
PARALLEL = "meta_schedule.parallel"


def recipe_of_trace(document: TraceDocument, task: TvmTask) -> Recipe:
    """The recipe that schedules loops as a trace does. task: that the trace was made for, or one with the
    same blocks.

    Raises NotApplicable, which says what of the trace no recipe says.
    """
    sketch = sketch_of(document)
    if sketch.instruction is not None:
        raise NotApplicable(f"the trace uses the instruction {sketch.instruction}")
    block, roles, width = _anchor(task)
    parallel = any(i[0] == "Annotate" and i[2] == [PARALLEL] for i in document.instructions)
    about: dict[str, Any] = {"parallel": "spatial" if parallel else "none"}
    tiles = anchor_tiles(document)
    if sketch.structure is None:
        return Recipe(**about, **_untiled(document, tiles, block, roles, width))
    if sketch.structure != STRUCTURE or sketch.factored:
        raise NotApplicable(
            f"the trace has tiles of the structure {sketch.structure}, with factored reductions"
        )
    return Recipe(**about, **_tiled(_by_role(tiles, block, roles), width))


def _anchor(task: TvmTask) -> tuple[TirBlock, Roles, int]:
    """The anchor of a task, the roles of its loops, and the lanes of its vectors."""
    from tvm.s_tir import Schedule

    schedule = Schedule(task.module)
    try:
        program, blocks = program_of(schedule)
    except UnsupportedConstruct as reason:
        raise NotApplicable(str(reason)) from None
    name = roles_of(task.function).names["anchor"]
    block = next(b for b in blocks if schedule.get(b.handle).name_hint == name)
    whole = block.band(schedule, schedule.get_loops(block.handle))
    if not whole.loops:
        raise NotApplicable("the block that does most of the work has no loops")
    buffers: Mapping[str, Buffer] = program.buffers
    return block, assign_roles(whole, buffers), max(lanes(s, buffers, AVX512) for s in whole.statements)


def _by_role(tiles: Sequence[Tile], block: TirBlock, roles: Roles) -> dict[str, tuple[int, ...]]:
    """Factors by role, of the longest of its loops."""
    if len(tiles) != len(block.iterators):
        raise NotApplicable("the trace does not tile every loop of its block")
    found: dict[str, Tile] = {}
    for tile, iterator in zip(tiles, block.iterators, strict=True):
        if iterator is None:
            continue
        role = roles.role(iterator)
        if role not in found or tile.extent > found[role].extent:
            found[role] = tile
    return {role: tile.factors for role, tile in found.items()}


def _tiled(factors: Mapping[str, tuple[int, ...]], width: int) -> dict[str, Any]:
    """Fields of the recipe for tiles of the structure `STRUCTURE`."""
    fields: dict[str, Any] = {"order": "blocked"}
    for role, found in factors.items():
        inner = found[2] * found[3] if role in "Pqp" else found[1]
        outer = found[0] * found[1] if role in "Pqp" else found[0]
        fields[f"tile_{role}"] = inner if outer > 1 else 0
    if "q" in factors:
        fields["register_q"] = factors["q"][3]
    if "p" in factors:
        fields["register_p"] = _vectors(factors["p"][3], width)
    return fields


def _vectors(points: int, width: int) -> int:
    """Whole vectors nearest to the points of a register tile."""
    if 2 * points < width:
        raise NotApplicable(
            f"the innermost tile of the contiguous loop has {points} points, a vector has {width}"
        )
    return max(1, round(points / width))


def _untiled(
    document: TraceDocument, tiles: Sequence[Tile], block: TirBlock, roles: Roles, width: int
) -> dict[str, Any]:
    """Fields for blocks that are not tiled in levels: rows, small tiles of rows, reductions in lanes."""
    located = [
        document.decisions[p] for p in places(document, "SampleComputeLocation") if p in document.decisions
    ]
    fields: dict[str, Any] = {"fuse": 1 if any(int(d) >= 0 for d in located) else 0}
    if "R" in document.loops:
        if sketch_of(document).factored:
            return {**fields, "order": "dot", "vector": "r", "register_r": 1}
        return {**fields, "order": "row", "register_p": 1}
    if not tiles:
        return {**fields, "order": "row"}
    inner = {role: found[-1] for role, found in _by_role(tiles, block, roles).items() if found[0] > 1}
    return {**fields, "order": "tile2d", **{f"tile_{role}": size for role, size in inner.items() if size > 1}}
