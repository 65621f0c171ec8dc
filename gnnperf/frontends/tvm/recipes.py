"""Recipes as TVM schedules: a schedule that was found on a DaCe nest, written in TVM's words.

A recipe is planned by the code that plans it for a DaCe nest (`BandPlan`: which loops are split, in which
order they run, what is parallel, where partial results are kept), block by block; here the plan becomes
schedule primitives. Tiles that divide and are near are preferred to those asked for: TVM guards what is left
over inside of the innermost loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.errors import NotApplicable, UnsupportedConstruct, first_line
from gnnperf.frontends.tvm.bands import TirBlock, program_of
from gnnperf.frontends.tvm.tasks import TvmTask
from gnnperf.frontends.tvm.tiled_bands import TiledBand, whole_lanes
from gnnperf.nests import Buffer, Loop, LoopNest
from gnnperf.nests.analysis import Band
from gnnperf.nests.fusion import fuse_outermost
from gnnperf.nests.ir import Node
from gnnperf.nests.names import Names
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.recipes.apply import streaming
from gnnperf.schedules.recipes.plan import BandPlan
from gnnperf.schedules.recipes.roles import assign_roles
from gnnperf.schedules.traces.factors import nearest


def apply_recipe(task: TvmTask, recipe: Recipe, vectors: VectorUnit = AVX512) -> Any:
    """The recipe as a `tvm.s_tir.Schedule` of a task that nothing was done to. Fields that TVM has no
    word for, and that change nothing but the speed, are passed over. vectors: of the machine.

    Raises NotApplicable: what TVM cannot express, named by the recipe's field, or what does not fit the task.
    """
    from tvm.s_tir import Schedule

    _require_expressible(recipe)
    schedule = Schedule(task.module)
    try:
        _inline(schedule, recipe)
        _Unit(schedule, recipe, vectors).lower()
    except UnsupportedConstruct as reason:
        raise NotApplicable(str(reason)) from None
    except NotApplicable:
        raise
    except Exception as error:  # TVM raises anything
        raise NotApplicable(f"TVM refuses the recipe: {first_line(error)}") from None
    return schedule


def _require_expressible(recipe: Recipe) -> None:
    if recipe.library:
        raise NotApplicable(f"library: TVM schedules loops, they do not call {recipe.library}")
    if recipe.parallel == "reduction":
        raise NotApplicable("parallel: threads that share a reduction have no TVM schedule here")


def _inline(schedule: Any, recipe: Recipe) -> None:
    """Copies, and pointwise blocks that one pointwise block alone reads, are computed where they are read, as
    in the normal form; with `combine: inline` the other pointwise blocks too."""
    _, blocks = program_of(schedule)
    pointwise = {schedule.get(b.handle).name_hint for b in blocks if b.pointwise}
    for block in blocks:
        readers = {schedule.get(c).name_hint for c in schedule.get_consumers(block.handle)}
        substituted = (readers <= pointwise and len(readers) == 1) or block.copies
        if block.pointwise and not block.results and (substituted or recipe.combine == "inline"):
            schedule.compute_inline(block.handle)


class _Unit:
    """All blocks of a function, apart or sharing their outermost loop."""

    def __init__(self, schedule: Any, recipe: Recipe, vectors: VectorUnit) -> None:
        self.schedule, self.recipe, self.vectors = schedule, recipe, vectors
        self._look()
        self.lanes: dict[str, tuple[Any, int]] = {}
        """Reductions in lanes, by name: the block of the lanes' own results, and the vectors of each."""
        for block in self.blocks:
            self._reduce_in_lanes(block)
        partial = {schedule.get(handle).name_hint for handle, _ in self.lanes.values()}
        self._look()
        self.partial = {n: b for b in self.blocks if (n := self._name(b)) in partial}

    def _name(self, block: TirBlock) -> str:
        return str(self.schedule.get(block.handle).name_hint)

    def _look(self) -> None:
        program, self.blocks = program_of(self.schedule)
        self.buffers: Mapping[str, Buffer] = program.buffers
        self.names = Names.of(LoopNest("", dict(program.buffers), program.body))
        bands = (b.band(self.schedule, self.schedule.get_loops(b.handle)) for b in self.blocks)
        self.streams = len(self.blocks) > 1 and any(self._is_contraction(b) for b in bands)

    def _is_contraction(self, found: Band) -> bool:
        return bool(found.loops) and assign_roles(found, self.buffers).is_contraction

    def lower(self) -> None:
        """Schedule everything."""
        shared = self.recipe.fuse and len(self.blocks) > 1
        if shared:
            self._share()
        for block in self.blocks:
            if self._name(block) in self.partial:
                continue
            self._lower(block, 1 if shared else 0, self.recipe.parallel != "none" and not shared)

    # ------------------------------------------------------------------ one block

    def _lower(self, block: TirBlock, shared: int, parallel: bool) -> None:
        """shared: loops around the block that are scheduled already."""
        name = self._name(block)
        if name not in self.lanes:
            self._band(block, shared, parallel, self.recipe)
            return
        handle, vectors = self.lanes[name]
        plain = replace(self.recipe, order="dot", vector="none", tile_r=0, tile_R=0, pack="")
        around = self._band(block, shared, parallel, plain)
        if not around:
            raise NotApplicable("vector: no loop is around the reduction")
        if around > shared:  # else it is there already
            at = self.schedule.get_loops(block.handle)[around - 1]
            self.schedule.compute_at(handle, at, preserve_unit_loops=True)
        across = replace(plain, vector="p", register_p=vectors, tile_p=0)
        self._band(self.partial[str(self.schedule.get(handle).name_hint)].moved, around, False, across)

    def _band(self, block: TirBlock, shared: int, parallel: bool, recipe: Recipe) -> int:
        """Schedule a block; how many loops are outside of its reduction."""
        loops = list(self.schedule.get_loops(block.handle))[shared:]
        plan = self._plan(block.band(self.schedule, loops), recipe, parallel)
        if plan is None:
            return shared
        iterators = [name if name in plan.loops else None for name in block.iterators]
        return TiledBand(self.schedule, block.handle, plan, loops, iterators).lower()

    def _plan(self, found: Band, recipe: Recipe, parallel: bool) -> BandPlan | None:
        """None for a single statement."""
        if not found.loops:
            return None
        plan = self._plan_of(found, recipe, parallel)
        if plan.vector_role == "r":  # in lanes that were not made: they would leave something over
            plan = self._plan_of(found, replace(plan.recipe, vector="none"), parallel)
        return plan

    def _plan_of(self, found: Band, recipe: Recipe, parallel: bool) -> BandPlan:
        """Of a recipe, which means something else for a band without reuse beside a contraction."""
        if recipe is self.recipe and self.streams and not self._is_contraction(found):
            recipe = streaming(recipe)
        return BandPlan(found, recipe, dict(self.buffers), frozenset(), parallel, self.names, self.vectors)

    # ------------------------------------------------------------------ vectors along reductions

    def _reduce_in_lanes(self, block: TirBlock) -> None:
        """Where the plan has vectors along the reduction, every lane reduces iterations of its own."""
        schedule = self.schedule
        loops = list(schedule.get_loops(block.handle))
        found = block.band(schedule, loops)
        if not found.loops:
            return
        plan = self._plan_of(found, self.recipe, parallel=False)
        if plan.vector_role != "r" or plan.vector is None:
            return
        loop = loops[block.iterators.index(plan.vector)]
        size = int(schedule.get(loop).extent)
        if not (width := whole_lanes(size, plan.lanes)):
            return
        wanted = max(1, plan.recipe.register_r)
        vectors = nearest(size // width, (max(1, size // width // wanted), wanted), 0, 1)[0][1]
        _, across = schedule.split(loop, [None, vectors * width])
        axis = len(schedule.get(block.handle).writes[0].region)
        partial = schedule.rfactor(across, axis)
        schedule.set_scope(partial, 0, "local")
        self.lanes[self._name(block)] = partial, vectors

    # ------------------------------------------------------------------ a shared loop

    def _share(self) -> None:
        """The last block in tiles of its outermost loop; what it needs is computed tile by tile."""
        nodes = tuple(b.node for b in self.blocks if self._name(b) not in self.partial)
        shared = _shared_loop(nodes, self.buffers)
        schedule, last = self.schedule, self.blocks[-1]
        loops = list(schedule.get_loops(last.handle))
        position = last.iterators.index(shared)
        size = int(schedule.get(loops[position]).extent)
        width = nearest(size, (-(-size // self.recipe.fuse), min(size, self.recipe.fuse)), 0, 1)[0][1]
        tile, loops[position] = schedule.split(loops[position], [None, width])
        schedule.reorder(tile, *loops)
        for block in self.blocks[-2::-1]:
            schedule.compute_at(block.handle, tile, preserve_unit_loops=True)
        self.blocks = [*(b.moved for b in self.blocks[:-1]), last]
        if self.recipe.parallel != "none":
            schedule.parallel(tile)


def _shared_loop(nodes: Sequence[Node], buffers: Mapping[str, Buffer]) -> str:
    """The iterator of the last nest that all nests can share, as DaCe's would."""
    fused = fuse_outermost(LoopNest("", dict(buffers), tuple(reversed(nodes))))
    if fused is None or len(fused.body) > 1:
        raise NotApplicable("fuse: the nests of the unit do not share an outermost loop")
    (shared,) = fused.body
    assert isinstance(shared, Loop)
    return shared.iterator
