"""Which neighbouring nests can share their outermost loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.analysis import (
    Band,
    accesses,
    band,
    bound_dependences,
    extent,
    initial_nest,
    mentioned,
    mentions,
    read,
    rebuild,
    rename_buffers,
    rename_iterators,
    safe_parallel,
    touched,
    varies,
    written,
)
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
    map_node,
    walk,
)  # fmt: skip
from gnnperf.nests.names import free_name

PEELED, LEAST_SHARED = 8, 8
"""Iterations that nests may have beyond those that all share; times as many have to be shared."""

_Part = tuple[Node, Loop]
"""A nest, and the loop of it that is shared."""


def fuse_outermost(nest: LoopNest) -> LoopNest | None:
    """One outer loop around all top-level nests, or None where that would break a dependence.

    Each nest contributes its outermost *aligned* spatial loop: the loops whose iterators, shifted where
    they begin elsewhere, index the same position of every buffer that flows between nests. A few iterations
    that not all nests have, as where a copy has the borders that a stencil leaves out, are peeled off: nests
    of their own before the loop, which is the last. A nest may also sum over the loop, into what no other
    nest touches: `y = A x; z = A.T y` reads the matrix once. Its initial value is set before the loop, too.
    """
    nodes = list(nest.body)
    if len(nodes) < 2 or not all(isinstance(n, Loop) for n in nodes):
        return None
    parts = _aligned_loops(nodes, nest.buffers)
    if parts is None:
        return None
    first, ends = parts[0][1], _common_range([loop for _, loop in parts])
    assert ends is not None
    buffers = dict(nest.buffers)
    peeled: list[Node] = []
    inner: list[Node] = []
    for number, (node, loop) in enumerate(parts):
        node, loop, initial = _begun(node, loop, buffers)
        peeled.extend(initial)
        for start, stop in ((loop.start, ends[0]), (ends[1], loop.stop)):
            if start != stop and _distance(start, stop) != 0:
                peeled.append(_peeled(node, loop, start, stop, len(peeled), buffers))
        rest = [lp for lp in band(node).loops if lp is not loop]
        body = rebuild(rest, band(node).body)
        inner.extend(share(n, loop.iterator, first.iterator, number) for n in body)
    shared = replace(first, start=ends[0], stop=ends[1], body=tuple(inner))
    return replace(nest, buffers=buffers, body=(*peeled, shared))


def _common_range(loops: Sequence[Loop]) -> tuple[Expr, Expr] | None:
    """The iterations that all loops have; None where they are not known ahead, or are not most of each."""
    first, *others = loops
    if all(same_range(loop, first) for loop in others):
        return first.start, first.stop
    if not all(map(_is_plain, loops)):
        return None
    begin, end = first.start, first.stop
    for loop in others:
        later, sooner = _distance(begin, loop.start), _distance(loop.stop, end)
        if later is None or sooner is None:
            return None
        begin, end = loop.start if later > 0 else begin, loop.stop if sooner > 0 else end
    most = max((_distance(lp.start, begin) or 0) + (_distance(end, lp.stop) or 0) for lp in loops)
    shared = _distance(begin, end)
    few = most <= PEELED and (shared is None or shared >= most * LEAST_SHARED)
    return (begin, end) if few else None


def _is_plain(loop: Loop) -> bool:
    return loop.step == 1 and not bound_dependences(loop) and loop.condition is None


def _distance(start: Expr, stop: Expr) -> int | None:
    """stop - start, where it is a constant."""
    return constant(Op("sub", (stop, start)))


def _peeled(node: Node, loop: Loop, start: Expr, stop: Expr, number: int, buffers: dict[str, Buffer]) -> Node:
    """The node with other ends of one loop. Local buffers that it writes get other names (in `buffers`)."""
    loops = [replace(lp, start=start, stop=stop) if lp is loop else lp for lp in band(node).loops]
    (found,) = rebuild(loops, band(node).body)
    names: dict[str, str] = {}
    for name in sorted(n for n in written(found) if buffers[n].scope == "local"):
        names[name] = free_name(f"{name}_peeled{number}", buffers)
        buffers[names[name]] = replace(buffers[name], name=names[name])
    return rename_buffers(found, names)


def share(node: Node, old: str, new: str, number: int) -> Node:
    """The shared iterator takes one name; the others are made unique per nest."""
    inner = {lp.iterator for lp in walk((node,)) if isinstance(lp, Loop)}
    names, taken = {old: new}, {new} | mentioned(node) - {old} - inner
    for name in sorted(inner):
        names[name] = free_name(f"{name}_{number}", taken)
        taken.add(names[name])
    return rename_iterators(node, names)


def _aligned_loops(nodes: Sequence[Node], buffers: Mapping[str, Buffer]) -> list[_Part] | None:
    """The loops that are shared: spatial ones, or, where those go through the columns of what all read and
    some write row by row, ones that the others sum over."""
    spatial = [movable_outermost(band(n), buffers) for n in nodes]
    summed = [_summed(band(n), buffers) for n in nodes]
    spatial_first = [[*a, *b] for a, b in zip(spatial[1:], summed[1:], strict=True)]
    summed_first = [[*b, *a] for a, b in zip(spatial[1:], summed[1:], strict=True)]
    found = _led_by(spatial[0], nodes, spatial_first)
    if found is not None and not _by_rows(found):
        for leads, others in ((spatial[0], summed_first), (summed[0], spatial_first)):
            rows = _led_by(leads, nodes, others)
            if rows is not None and _by_rows(rows) and any(_spatial(loop, buffers) for _, loop in rows):
                return rows
    return found


def _led_by(
    leads: Sequence[Loop], nodes: Sequence[Node], others: Sequence[Sequence[Loop]]
) -> list[_Part] | None:
    """The first of these loops of the first nest that each of the others can join with one of its own."""
    for lead in leads:
        parts = [(nodes[0], lead)]
        for node, loops in zip(nodes[1:], others, strict=True):
            joining = (_joining(parts, node, loop) for loop in loops)
            found = next((part for part in joining if part is not None), None)
            if found is None:
                break
            parts.append(found)
        if len(parts) == len(nodes):
            return parts
    return None


def _by_rows(parts: Sequence[_Part]) -> bool:
    """Does the shared loop go through the first dimension of the matrices that all parts read?"""
    common = set.intersection(*(read(node) for node, _ in parts))
    places = {
        alignment(a.load, loop.iterator)
        for node, loop in parts
        for a in accesses(node)
        if a.load.buffer in common and len(a.load.indices) > 1
    }
    return bool(places) and all(place is not None and place[0] == 0 for place in places)


def _joining(parts: Sequence[_Part], node: Node, loop: Loop) -> _Part | None:
    """The node with its loop shifted to where the parts can share it: every buffer that one writes and the
    other touches is then addressed, in one and the same dimension, by exactly the shared iterator plus one
    and the same offset."""
    shifts: set[int] = set()
    for other, theirs in parts:
        for name in (written(other) & touched(node)) | (written(node) & touched(other)):
            place, mine = _place(other, theirs, name), _place(node, loop, name)
            if place is None or mine is None or place[0] != mine[0]:
                return None
            shifts.add(mine[1] - place[1])
    if not shifts and _is_plain(loop):
        shifts.add(_distance(loop.start, parts[0][1].start) or 0)
    if len(shifts) > 1 or (any(shifts) and not _is_plain(loop)):
        return None
    part = _shifted(node, loop, shifts.pop() if shifts else 0)
    return part if _common_range([*(lp for _, lp in parts), part[1]]) is not None else None


def _place(node: Node, loop: Loop, name: str) -> tuple[int, int] | None:
    """The one (dimension, offset) at which a loop's iterator addresses a buffer."""
    keys = {alignment(a.load, loop.iterator) for a in accesses(node) if a.load.buffer == name}
    return keys.pop() if len(keys) == 1 else None


def _shifted(node: Node, loop: Loop, by: int) -> _Part:
    """The same iterations, counted from elsewhere."""
    if by == 0:
        return node, loop
    moved: Expr = Op("sub", (Symbol(loop.iterator), Const(by)))

    def counted(expr: Expr) -> Expr:
        if isinstance(expr, Load):
            return Load(expr.buffer, tuple(map(simplify, expr.indices)))
        return moved if expr == Symbol(loop.iterator) else expr

    nest = band(map_node(node, counted))
    start, stop = (simplify(Op("add", (end, Const(by)))) for end in (loop.start, loop.stop))
    loops = [replace(lp, start=start, stop=stop) if lp.iterator == loop.iterator else lp for lp in nest.loops]
    (found,) = rebuild(loops, nest.body)
    return found, next(lp for lp in band(found).loops if lp.iterator == loop.iterator)


def movable_outermost(nest: Band, buffers: Mapping[str, Buffer]) -> list[Loop]:
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


def streams(node: Node) -> bool:
    """Is something as large as the iterations read, so that no order of them reads it less often?"""
    nest = band(node)
    return nest.is_perfect and any(
        all(varies(a.load, name) for name in nest.iterators) for s in nest.statements for a in accesses(s)
    )


def _summed(nest: Band, buffers: Mapping[str, Buffer]) -> list[Loop]:
    """Loops over which a nest that streams only sums, which nothing keeps inside."""
    if not nest.loops or not streams(nest.loops[0]) or any(map(bound_dependences, nest.loops)):
        return []
    if any(not loop.independent for loop in nest.loops):
        return []
    return [
        loop
        for loop in nest.loops
        if all(
            s.reduce is not None
            and not varies(s.target, loop.iterator)
            and buffers[s.target.buffer].scope == "global"
            for s in nest.statements
        )
    ]


def _begun(node: Node, loop: Loop, buffers: Mapping[str, Buffer]) -> tuple[Node, Loop, list[Node]]:
    """The nest without the initial values of what it sums over the loop, the loop, nests that set these."""
    nest = band(node)
    initial: list[Node] = []
    body: list[Node] = []
    for child in nest.body:
        if isinstance(child, Statement) and child.init is not None:
            target = child.target
            if not varies(target, loop.iterator) and buffers[target.buffer].scope == "global":
                initial.append(initial_nest(child, nest.loops))
                child = replace(child, init=None)
        body.append(child)
    (found,) = rebuild(nest.loops, tuple(body))
    return found, next(lp for lp in band(found).loops if lp.iterator == loop.iterator), initial


def _spatial(loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    return safe_parallel(loop, buffers) and all(
        varies(s.target, loop.iterator) or buffers[s.target.buffer].scope == "local"
        for s in walk(loop.body)
        if isinstance(s, Statement)
    )


def same_range(a: Loop, b: Loop) -> bool:
    if bound_dependences(a) or bound_dependences(b):
        return a.start == b.start and a.stop == b.stop and a.step == b.step
    return extent(a) is not None and extent(a) == extent(b) and a.step == b.step and a.start == b.start


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
