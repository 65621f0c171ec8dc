"""The split of a straight-line program into units: what is embedded, scheduled and replaced together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from gnnperf.nests.analysis import read, touched, written
from gnnperf.nests.combine import combine
from gnnperf.nests.copied_slices import leading_copies
from gnnperf.nests.fusion import fuse_outermost, streams
from gnnperf.nests.ir import Buffer, LoopNest, Node
from gnnperf.nests.normalise import normalise
from gnnperf.nests.overlap import overlap

MAX_UNIT_ITEMS = 64
"""Longer chains are cut: compile time and the search space grow faster than the gain."""


MAX_PASSES = 8
"""Nests that run together for no other reason than that they read the same array: each takes registers and
cache from the others."""


class _Names(NamedTuple):
    """Arrays of an item: those whose earlier contents it may need, that it writes, and both and all others
    that it touches."""

    read: set[str]
    written: set[str]
    touched: set[str]


@dataclass(frozen=True)
class _Program:
    """A straight-line program: what every question about its units needs."""

    items: Sequence[tuple[Node, ...]]
    buffers: Mapping[str, Buffer]
    live_out: set[str]
    parameters: Mapping[str, int]
    accept: Callable[[LoopNest], bool]
    """May what items make together, in normal form, be one unit?"""
    passes: bool = False
    """Do items also meet that read an array in common, where each goes through it but once?"""
    answers: dict[tuple[int, ...], bool] = field(default_factory=dict)
    """Of `one_unit`, which is asked again of the same items whenever others have joined."""
    together: dict[tuple[int, ...], _Names] = field(default_factory=dict)
    """Likewise, of `_of`."""

    @cached_property
    def names(self) -> Sequence[_Names]:
        """Of every item."""
        return [
            _Names(*({name for node in item for name in of(node)} for of in (read, written, touched)))
            for item in self.items
        ]

    def meets(self, earlier: list[int], later: list[int]) -> bool:
        """Is there something to gain where both run together?"""
        if not self.passes or self.flows(earlier, later):
            return self.flows(earlier, later)
        nodes = self._nodes([*earlier, *later])
        common = self._of(earlier).read & self._of(later).read
        return (
            len(earlier) + len(later) <= MAX_PASSES
            and any(self.buffers[name].shape for name in common)
            and all(map(streams, nodes))
        )

    def flows(self, earlier: list[int], later: list[int]) -> bool:
        """Later items touch what earlier ones write."""
        return not self._of(earlier).written.isdisjoint(self._of(later).touched)

    def depends(self, earlier: list[int], later: list[int]) -> bool:
        """Flow, anti or output dependence of later items on earlier ones."""
        one, other = self._of(earlier), self._of(later)
        return not (one.written.isdisjoint(other.read | other.written) and one.read.isdisjoint(other.written))

    def one_unit(self, members: list[int]) -> bool:
        """Do the items make something that is accepted, and not too much of it?"""
        if sum(len(self.items[i]) for i in members) > MAX_UNIT_ITEMS:
            return False
        if (key := tuple(members)) not in self.answers:
            others = (names.touched for i, names in enumerate(self.names) if i not in members)
            outside = self.live_out.union(*others)
            mentioned = self._of(members).touched
            scoped = {
                k: replace(b, transient=b.transient and k not in outside)
                for k, b in self.buffers.items()
                if k in mentioned
            }
            unit = normalise(LoopNest("unit", scoped, self._nodes(members), self.parameters))
            self.answers[key] = self.accept(unit)
        return self.answers[key]

    def _nodes(self, items: list[int]) -> tuple[Node, ...]:
        return tuple(node for i in items for node in self.items[i])

    def _of(self, items: list[int]) -> _Names:
        if (key := tuple(items)) not in self.together:
            read, written, touched = (set().union(*(self.names[i][n] for i in items)) for n in range(3))
            self.together[key] = _Names(read, written, touched)
        return self.together[key]


def partition(
    items: Sequence[tuple[Node, ...]],
    buffers: Mapping[str, Buffer],
    live_out: set[str],
    parameters: Mapping[str, int] | None = None,
) -> list[list[int]]:
    """Units of a straight-line program: lists of item indices, in execution order.

    Items of one unit need not be adjacent; executing the units in the order returned, and the items
    of a unit in ascending order, respects every dependence of the original order. Items join when data flows
    between them, or they go through one array, and the result is one nest, nests that can share their
    outermost loop, or such as can be one that computes again what it needs of the others; those that are one
    nest come first, so that an expression is never cut in two.
    `live_out`: buffers read after the program (everything that is not transient, at least).
    """
    known = parameters or {}
    nests = _grouped(_Program(items, buffers, live_out, known, _is_one_nest))
    whole = [tuple(n for i in members for n in items[i]) for members in nests]
    units = _grouped(_Program(whole, buffers, live_out, known, _shares_a_loop, passes=True))
    return [sorted(i for position in unit for i in nests[position]) for unit in units]


def _is_one_nest(nest: LoopNest) -> bool:
    return len(nest.body) == 1


def _shares_a_loop(nest: LoopNest) -> bool:
    if _is_one_nest(nest) or fuse_outermost(nest) is not None:
        return True
    if _shares_rows(nest):
        return True
    merged = combine("merge", nest)
    copies = leading_copies(merged.body, merged.buffers)
    rest = replace(merged, body=merged.body[copies:])
    if copies > 0 and (_is_one_nest(rest) or fuse_outermost(rest) is not None):
        return True
    return _is_one_nest(combine("inline", nest))


def _shares_rows(nest: LoopNest) -> bool:
    """Do nests that stream share rows with margins?"""
    scratch = {name for name, buffer in nest.buffers.items() if buffer.transient}
    return all(map(streams, nest.body)) and overlap(nest.body, nest.buffers, scratch) is not None


def _grouped(program: _Program) -> list[list[int]]:
    units: list[list[int]] = []
    for index in range(len(program.items)):
        home = _home(units, index, program)
        if home is None:
            units.append([index])
        else:
            units[home].append(index)
    return _join(units, program)


def _join(units: list[list[int]], program: _Program) -> list[list[int]]:
    """Join units that data flows between: an item that starts a new value (an initial value, say) opens
    a unit of its own, and what follows must not be cut off from what came before."""
    joined = True
    while joined:
        joined = False
        for later in range(1, len(units)):
            for earlier in range(later - 1, -1, -1):
                place = _joint_place(units, earlier, later, program)
                members = sorted(units[earlier] + units[later])
                if place is not None and program.one_unit(members):
                    units[place] = members
                    del units[later if place == earlier else earlier]
                    joined = True
                    break
            if joined:
                break
    return units


def _joint_place(units: list[list[int]], earlier: int, later: int, program: _Program) -> int | None:
    """Where the two units may run as one: at the place of one of them, past what lies between."""
    if not program.meets(units[earlier], units[later]):
        return None
    between = units[earlier + 1 : later]
    if not any(program.depends(unit, units[later]) for unit in between):
        return earlier
    if not any(program.depends(units[earlier], unit) for unit in between):
        return later
    return None


def _home(units: list[list[int]], index: int, program: _Program) -> int | None:
    """The earliest-placed unit that item `index` may join, walking back until a dependence forbids."""
    for position in range(len(units) - 1, -1, -1):
        unit = units[position]
        if program.meets(unit, [index]) and program.one_unit([*unit, index]):
            return position
        if program.depends(unit, [index]):
            # The item cannot move before this unit, but an earlier, independent unit may move after it.
            return _pull_forward(units, position, index, program)
    return None


def _pull_forward(units: list[list[int]], position: int, index: int, program: _Program) -> int | None:
    """Let an earlier unit that feeds the item (typically an initial value) move behind the units
    between, when none of them depends on it."""
    for earlier in range(position - 1, -1, -1):
        unit = units[earlier]
        if not program.flows(unit, [index]):
            continue
        if any(program.depends(unit, later) for later in units[earlier + 1 :]):
            continue
        if program.one_unit([*unit, index]):
            units.append(units.pop(earlier))
            return len(units) - 1
    return None
