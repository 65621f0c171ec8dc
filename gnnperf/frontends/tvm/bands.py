"""The blocks of a TVM schedule as the bands of loops that recipes are planned for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm.translate import TirProgram, translate
from gnnperf.nests import Const, Load, Node
from gnnperf.nests.analysis import Band, band, extent, rebuild
from gnnperf.nests.normalise import minimise_strides


@dataclass(frozen=True)
class TirBlock:
    """A block of a schedule that nothing was split of yet.

    handle: its SBlockRV. node: its loops and statement, from the function. iterators: of the node, one for
    each loop around the block; None where that has one iteration. order: of the loops, by the block's axes.
    results: are they what the function returns?
    """

    handle: Any
    node: Node
    iterators: tuple[str | None, ...]
    order: tuple[int, ...]
    results: bool

    @property
    def moved(self) -> TirBlock:
        """The block once it is computed at a loop of another: TVM makes its loops anew, one for each axis."""
        return replace(self, iterators=tuple(self.iterators[n] for n in self.order))

    @property
    def pointwise(self) -> bool:
        """Does it reduce nothing?"""
        return all(s.reduce is None for s in band(self.node).statements)

    @property
    def copies(self) -> bool:
        """Does it move elements, and nothing else?"""
        return self.pointwise and all(isinstance(s.value, Load) for s in band(self.node).statements)

    def band(self, schedule: Any, loops: Sequence[Any]) -> Band:
        """The band of the loops, one for each iterator, with the extents that the schedule has left them."""
        sizes = {
            name: int(schedule.get(loop).extent)
            for name, loop in zip(self.iterators, loops, strict=True)
            if name is not None
        }
        whole = band(self.node)
        left = [
            lp
            if extent(lp) == sizes[lp.iterator]
            else replace(lp, start=Const(0), stop=Const(sizes[lp.iterator]))
            for lp in whole.loops
            if sizes.get(lp.iterator, 1) > 1
        ]
        return band(rebuild(left, whole.body)[0]) if left else Band((), whole.body)


def program_of(schedule: Any) -> tuple[TirProgram, list[TirBlock]]:
    """The program of a schedule's function, and its blocks in order.

    Raises NotApplicable where a block has not all of its loops for itself, UnsupportedConstruct where the IR
    lacks what a block does.
    """
    program = translate(schedule.mod["main"])
    root = schedule.get_sblock("root")
    handles = list(schedule.get_child_blocks(root))
    if len(handles) != len(program.body):
        raise NotApplicable("blocks share loops")
    outputs = {schedule.get(b).name_hint for b in schedule.get_output_blocks(root)}
    axes = _axes(schedule.mod["main"])
    found: list[TirBlock] = []
    for handle, node in zip(handles, program.body, strict=True):
        name, own = schedule.get(handle).name_hint, band(node)
        names = iter(own.iterators)
        sizes = [int(schedule.get(loop).extent) for loop in schedule.get_loops(handle)]
        if [n for n in sizes if n > 1] != [extent(lp) for lp in own.loops] or not own.is_perfect:
            raise NotApplicable(f"block {name}: it shares its loops, or its bounds are not constant")
        iterators = tuple(next(names) if n > 1 else None for n in sizes)
        node = minimise_strides(node, program.buffers)
        found.append(TirBlock(handle, node, iterators, _order(schedule, handle, axes[name]), name in outputs))
    return program, found


def _axes(function: Any) -> dict[str, list[Any]]:
    """What the axes of every block are bound to, by its name."""
    import tvm_ffi
    from tvm.s_tir.stmt import SBlockRealize

    found: dict[str, list[Any]] = {}

    def visit(realize: Any) -> None:
        found[str(realize.block.name_hint)] = list(realize.iter_values)

    tvm_ffi.structural_walk(function.body, [(SBlockRealize, visit)], order="pre")
    return found


def _order(schedule: Any, handle: Any, values: Sequence[Any]) -> tuple[int, ...]:
    """Positions of the loops that the axes are bound to. Raises NotApplicable where an axis is no loop."""
    variables = [schedule.get(loop).loop_var for loop in schedule.get_loops(handle)]
    found = [next((i for i, v in enumerate(variables) if v.same_as(value)), None) for value in values]
    if sorted(i for i in found if i is not None) != list(range(len(variables))):
        raise NotApplicable(f"block {schedule.get(handle).name_hint}: its axes are not its loops")
    return tuple(i for i in found if i is not None)
