"""Which neighbouring nests can share their outermost loop: legality, and the split into units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gnnperf.nests.affine import affine
from gnnperf.nests.analysis import (
    Band,
    accesses,
    band,
    bound_dependences,
    extent,
    mentions,
    read,
    rebuild,
    rename_iterators,
    safe_parallel,
    varies,
    written,
)
from gnnperf.nests.ir import (
    Buffer,
    Load,
    Loop,
    LoopNest,
    Node,
    Statement,
    Symbol,
    walk,
)  # fmt: skip
from gnnperf.nests.normalise import normalise

MAX_UNIT_ITEMS = 64
"""Longer chains are cut: compile time and the search space grow faster than the gain."""


@dataclass(frozen=True)
class _Program:
    """A straight-line program: what every question about its units needs."""

    items: Sequence[tuple[Node, ...]]
    buffers: Mapping[str, Buffer]
    live_out: set[str]
    parameters: Mapping[str, int]

    def flows(self, earlier: list[int], later: list[int]) -> bool:
        """Later items touch what earlier ones write."""
        return not self._names(earlier, written).isdisjoint(self._names(later, _touched))

    def depends(self, earlier: list[int], later: list[int]) -> bool:
        """Flow, anti or output dependence of later items on earlier ones."""
        writes = self._names(later, written)
        touches = writes | self._names(later, read)
        return not (
            self._names(earlier, written).isdisjoint(touches)
            and self._names(earlier, read).isdisjoint(writes)
        )

    def one_unit(self, members: list[int]) -> bool:
        """The items make one nest, or nests that can share their outermost loop."""
        others = [i for i in range(len(self.items)) if i not in members]
        outside = self.live_out | self._names(others, _touched)
        scoped = {k: replace(b, transient=b.transient and k not in outside) for k, b in self.buffers.items()}
        body = tuple(n for i in members for n in self.items[i])
        nest = normalise(LoopNest("unit", scoped, body, self.parameters))
        return len(nest.body) == 1 or fuse_outermost(nest) is not None

    def _names(self, items: list[int], of: Callable[[Node], set[str]]) -> set[str]:
        return {name for i in items for node in self.items[i] for name in of(node)}


def _touched(node: Node) -> set[str]:
    return {a.load.buffer for a in accesses(node)}


def partition(
    items: Sequence[tuple[Node, ...]],
    buffers: Mapping[str, Buffer],
    live_out: set[str],
    parameters: Mapping[str, int] | None = None,
) -> list[list[int]]:
    """Units of a straight-line program: lists of item indices, in execution order.

    Items of one unit need not be adjacent; executing the units in the order returned, and the items
    of a unit in ascending order, respects every dependence of the original order. Items join when
    data flows between them and the result is one nest or nests that can share their outermost loop.
    `live_out`: buffers read after the program (everything that is not transient, at least).
    """
    program = _Program(items, buffers, live_out, parameters or {})
    units: list[list[int]] = []
    for index in range(len(items)):
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
                if place is None or len(members) > MAX_UNIT_ITEMS:
                    continue
                if program.one_unit(members):
                    units[place] = members
                    del units[later if place == earlier else earlier]
                    joined = True
                    break
            if joined:
                break
    return units


def _joint_place(units: list[list[int]], earlier: int, later: int, program: _Program) -> int | None:
    """Where the two units may run as one: at the place of one of them, past what lies between."""
    if not program.flows(units[earlier], units[later]):
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
        if len(unit) < MAX_UNIT_ITEMS and program.flows(unit, [index]) and program.one_unit([*unit, index]):
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
        if len(unit) < MAX_UNIT_ITEMS and program.one_unit([*unit, index]):
            units.append(units.pop(earlier))
            return len(units) - 1
    return None


def fuse_outermost(nest: LoopNest) -> LoopNest | None:
    """One outer loop around all top-level nests, or None where that would break a dependence.

    Each nest contributes its outermost *aligned* spatial loop: the loops whose iterators index the
    same position of every buffer that flows between nests.
    """
    nodes = list(nest.body)
    if len(nodes) < 2 or not all(isinstance(n, Loop) for n in nodes):
        return None
    chosen = _aligned_loops(nodes, nest.buffers)
    if chosen is None:
        return None
    first = chosen[0]
    inner: list[Node] = []
    for number, (node, loop) in enumerate(zip(nodes, chosen, strict=True)):
        rest = [lp for lp in band(node).loops if lp is not loop]
        body = rebuild(rest, band(node).body)
        inner.extend(_share(n, loop.iterator, first.iterator, number) for n in body)
    return replace(nest, body=(replace(first, body=tuple(inner)),))


def _share(node: Node, old: str, new: str, number: int) -> Node:
    """The shared iterator takes one name; the others are made unique per nest."""
    inner = {lp.iterator for lp in walk((node,)) if isinstance(lp, Loop)}
    names = {old: new}
    for name in sorted(inner):
        names[name] = f"{name}_{number}"
        while names[name] == new:
            names[name] += "_"
    return rename_iterators(node, names)


def _aligned_loops(nodes: Sequence[Node], buffers: Mapping[str, Buffer]) -> list[Loop] | None:
    candidates = [_movable_outermost(band(n), buffers) for n in nodes]
    for lead in candidates[0]:
        chosen: list[Loop] | None = [lead]
        for options in candidates[1:]:
            assert chosen is not None
            match = next(
                (lp for lp in options if _same_range(lp, lead) and _aligned(nodes, [*chosen, lp])), None
            )
            if match is None:
                chosen = None
                break
            chosen.append(match)
        if chosen is not None:
            return chosen
    return None


def _movable_outermost(nest: Band, buffers: Mapping[str, Buffer]) -> list[Loop]:
    """Spatial loops that nothing keeps inside: no sequential loop and no loop of their bounds around."""
    found: list[Loop] = []
    around: set[str] = set()
    for loop in nest.loops:
        if not loop.independent:
            break
        around.add(loop.iterator)
        if not (bound_dependences(loop) & around) and _spatial(loop, buffers):
            found.append(loop)
    return found


def _spatial(loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    return safe_parallel(loop, buffers) and all(
        varies(s.target, loop.iterator) or buffers[s.target.buffer].scope == "local"
        for s in walk(loop.body)
        if isinstance(s, Statement)
    )


def _same_range(a: Loop, b: Loop) -> bool:
    if bound_dependences(a) or bound_dependences(b):
        return a.start == b.start and a.stop == b.stop and a.step == b.step
    return extent(a) is not None and extent(a) == extent(b) and a.step == b.step and a.start == b.start


def _aligned(nodes: Sequence[Node], chosen: list[Loop]) -> bool:
    """Every buffer that is written by one nest and touched by another is addressed, in one and the
    same dimension, by exactly the shared iterator plus one and the same offset."""
    count = len(chosen)
    last = count - 1
    for other in range(last):
        shared = (written(nodes[other]) & {a.load.buffer for a in accesses(nodes[last])}) | (
            written(nodes[last]) & {a.load.buffer for a in accesses(nodes[other])}
        )
        for name in shared:
            keys = {
                alignment(a.load, chosen[i].iterator)
                for i in (other, last)
                for a in accesses(nodes[i])
                if a.load.buffer == name
            }
            if len(keys) != 1 or None in keys:
                return False
    return True


def alignment(load: Load, iterator: str) -> tuple[int, int] | None:
    """(dimension, offset) where the subscript is iterator + offset, and no other dimension varies."""
    found: tuple[int, int] | None = None
    for dimension, index in enumerate(load.indices):
        form = affine(index)
        if form.terms == {Symbol(iterator): 1} and found is None:
            found = (dimension, form.constant)
        elif any(mentions(atom, iterator) for atom in form.terms):
            return None
    return found
