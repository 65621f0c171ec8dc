"""Loops over time whose steps write the next state into a second copy of the arrays, and back in the next.

for t in 0..2 n:                                    S[...] = A[...]
    for i: T[i] = A[i - 1] + A[i + 1]               for t in 0..n:
    for i: A[i] += T[i]                                 for i: S[i] = A[i] + A[i - 1] + A[i + 1]
                                                        for i: A[i] = S[i] + S[i - 1] + S[i + 1]

In place, what a step reads of the neighbours has to be put by before one of them is overwritten. Between two
copies it goes straight from one to the other: one sweep over the arrays, and no scratch. Elements that no
step writes are the same in both; what else a step writes, borders, is copied ahead of the sweep. Arrays of
the caller that every step only uses for its work get what the last one leaves there: that is done in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import (
    Band,
    accesses,
    apart,
    band,
    depth,
    extent,
    mentions,
    read,
    rebuild,
    rename_buffers,
    rename_iterators,
    written,
)
from gnnperf.nests.coverage import flow, whole_box
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
    expressions_of,
    loads,
    row_major,
    substitute_node,
    walk,
)  # fmt: skip
from gnnperf.nests.names import Names
from gnnperf.nests.ranges import loops_of, value_range

FEWEST_STEPS = 4
"""Of a loop over time: the second copy has to be made first."""
MOST_COPIED = 0.25
"""Share of an array that may be copied ahead of every sweep."""

Box = tuple[tuple[float, float], ...]
"""Per dimension, the least and the greatest subscript."""


@dataclass(frozen=True)
class HalfSteps:
    """A nest whose loops over time write a second copy of their arrays, and read the first all the same; what
    is in the second is put back after the loop.

    originals: the loops as they were, by the name that the iterator of each has in `nest`. copies: by that
    name the second copy of every array of the loop that has one.
    """

    nest: LoopNest
    originals: Mapping[str, Loop]
    copies: Mapping[str, Mapping[str, str]]

    def sweeps(self, nest: LoopNest) -> int:
        """How often steps of these loops go through whole arrays, in a nest that does the same as `nest`, or
        where they were found."""
        names = {*self.originals, *(loop.iterator for loop in self.originals.values())}
        depths = [[depth(part) for part in loop.body] for loop in nest.loops() if loop.iterator in names]
        return sum(found.count(max(found)) for found in depths)

    def completed(self, nest: LoopNest) -> LoopNest:
        """`nest`, which does the same as `self.nest`, each step from the copy that the last one wrote."""
        names = Names.of(nest)
        copied = {copy for copies in self.copies.values() for copy in copies.values()}
        buffers = {n: replace(b, transient=True) if n in copied else b for n, b in nest.buffers.items()}
        odd = {lp.iterator for lp in nest.loops() if lp.iterator in self.originals and (extent(lp) or 0) % 2}
        first = {  # after any but an odd number of steps, what is new is in the first copies
            copy: name
            for iterator, copies in self.copies.items()
            for name, copy in copies.items()
            if iterator not in odd
        }

        def replaced(node: Node) -> Iterator[Node]:
            if isinstance(node, Loop) and node.iterator in self.originals:
                yield from _alternating(node, self.copies[node.iterator], buffers, names)
            elif isinstance(node, Loop):
                if body := tuple(new for child in node.body for new in replaced(child)):
                    yield replace(node, body=body)
            else:
                node = rename_buffers(node, first)
                if not isinstance(node, Statement) or node.target != node.value:
                    yield node

        body = tuple(new for node in nest.body for new in replaced(node))
        return replace(nest, body=body, buffers=buffers)


def half_steps(nest: LoopNest) -> HalfSteps | None:
    """The loops over time of a nest that can go from one copy to another, the innermost of those in each
    other; None where there are none. Loops in independent ones are none."""
    names, buffers = Names.of(nest), dict(nest.buffers)
    originals: dict[str, Loop] = {}
    copies: dict[str, Mapping[str, str]] = {}

    def replaced(node: Node) -> Iterator[Node]:
        if not isinstance(node, Loop) or node.independent:
            yield node
            return
        body = tuple(new for child in node.body for new in replaced(child))
        if body != node.body or not (moved := _moved(node, buffers)):
            yield replace(node, body=body)
            return
        iterator, own = names.fresh(node.iterator), {name: names.fresh(name) for name in moved}
        originals[iterator], copies[iterator] = node, own
        for name, copy in own.items():
            # An argument as yet: scratch that nothing reads again would not be kept.
            buffers[copy] = _like(buffers[name], copy)
        work = {name: names.fresh(name) for name in _work_arrays(node, buffers)}
        buffers.update({new: replace(buffers[old], name=new, transient=True) for old, new in work.items()})
        parts = tuple(rename_buffers(part, work) for part in _half_step(node, moved, own, names))
        stop = simplify(Op("sub", (node.stop, Const(1)))) if work else node.stop
        yield rename_iterators(replace(node, stop=stop, body=parts), {node.iterator: iterator})
        for name, copy in own.items():
            yield _copy(copy, name, whole_box(buffers[name]), names)
        if work and extent(node) is not None:  # which the last step fills, in place
            yield from _step(node, stop, {}, names)
        elif work:  # if there is one
            last = names.fresh(node.iterator)
            body = tuple(_step(node, Symbol(last), {}, names))
            yield replace(node, iterator=last, start=Op("max", (node.start, stop)), body=body)

    body = tuple(new for node in nest.body for new in replaced(node))
    nest = replace(nest, body=body, buffers=buffers)
    return HalfSteps(nest, originals, copies) if originals else None


# --------------------------------------------------------------------------- which arrays


@dataclass(frozen=True)
class _Update:
    """Number of the part of a step that updates an array, and boxes around what others write of it."""

    part: int
    borders: tuple[Box, ...]


def _moved(loop: Loop, buffers: Mapping[str, Buffer]) -> dict[str, _Update]:
    """Arrays that a step updates from what was read of them before."""
    steps = extent(loop)
    if loop.condition is not None or loop.step != 1 or (steps is not None and steps < FEWEST_STEPS):
        return {}
    if any(ld.indices or ld.buffer in written(loop) for e in (loop.start, loop.stop) for ld in loads(e)):
        return {}
    states = sorted(written(loop) & flow(loop.body).exposed)
    found = {name: _update(loop, buffers[name]) for name in states if buffers[name].scope == "global"}
    return {name: update for name, update in found.items() if update is not None}


def _update(loop: Loop, buffer: Buffer) -> _Update | None:
    """How a loop updates an array; None where it does otherwise than element by element."""
    name, shape = buffer.name, [s for s in buffer.shape if isinstance(s, int)]
    writing = [n for n, part in enumerate(loop.body) if name in written(part)]
    part = next((n for n in writing if _is_pointwise(band(loop.body[n]), name, loop)), None)
    if part is None or not shape or len(shape) < len(buffer.shape):
        return None
    if not any(name in read(earlier) for earlier in loop.body[:part]):
        return None
    borders = [box for n in writing if n != part for box in _boxes(loop.body[n], name)]
    inside = all(0 <= a <= b < size for box in borders for (a, b), size in zip(box, shape, strict=True))
    copied = sum(prod(b - a + 1 for a, b in box) for box in borders)
    return _Update(part, tuple(borders)) if inside and copied <= MOST_COPIED * prod(shape) else None


def _is_pointwise(nest: Band, name: str, around: Loop) -> bool:
    """Does every iteration write an element of its own, whatever the time, and read no other?"""
    if not nest.loops or not nest.is_perfect:
        return False
    writing = [s for s in nest.statements if s.target.buffer == name]
    if len(writing) != 1 or writing[0].guard is not None or writing[0].init is not None:
        return False
    target = writing[0].target
    touching = [a.load for s in nest.statements for a in accesses(s) if a.load.buffer == name]
    bounds = [e for loop in nest.loops for e in expressions_of(loop)]
    return (
        all(load.indices == target.indices for load in touching)
        and all(loop.independent and loop.condition is None for loop in nest.loops)
        and apart(target, nest.loops)
        and _is_fixed((*bounds, *target.indices), around)
    )


def _work_arrays(loop: Loop, buffers: Mapping[str, Buffer]) -> list[str]:
    """Arguments that each step overwrites, the same elements in all of them, before it reads any."""
    names = sorted(written(loop) - flow(loop.body).exposed)
    names = [n for n in names if buffers[n].scope == "global" and not buffers[n].transient]
    return [n for n in names if all(_always(part, n, loop) for part in loop.body)]


def _always(part: Node, name: str, around: Loop) -> bool:
    """Does a part write the same elements of an array whatever the time and the data, if any?"""
    if name not in written(part):
        return True
    nest = band(part)
    writing = [s for s in nest.statements if s.target.buffer == name]
    places = [index for s in writing for index in s.target.indices]
    return (
        nest.is_perfect
        and all(s.guard is None for s in writing)
        and all(loop.condition is None for loop in nest.loops)
        and _is_fixed((*places, *(e for loop in nest.loops for e in expressions_of(loop))), around)
    )


def _is_fixed(expressions: Iterable[Expr], around: Loop) -> bool:
    """Are these the same in every iteration of a loop, given those inside it?"""
    return not any(mentions(e, around.iterator) or loads(e) for e in expressions)


def _boxes(part: Node, name: str) -> set[Box]:
    """Around all that a part of a step may write of an array."""
    loops = loops_of((part,))
    targets = {a.load for a in accesses(part) if a.load.buffer == name and a.is_write}
    return {tuple(value_range(index, loops) for index in target.indices) for target in targets}


# --------------------------------------------------------------------------- steps


def _like(buffer: Buffer, name: str) -> Buffer:
    """Another array of that shape, its axes in the same order in memory."""
    shape = [s for s in buffer.shape if isinstance(s, int)]
    strides = [s for s in buffer.strides if isinstance(s, int)]
    strides = strides if sorted(strides) == sorted(_dense(shape, strides)) else [*row_major(shape)]
    return replace(buffer, name=name, strides=tuple(strides), transient=False, offset=0)


def _dense(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Strides of the same order without gaps."""
    if len(strides) < len(shape):
        return []
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    return [*row_major([shape[d] for d in order])]


def _half_step(
    loop: Loop, moved: Mapping[str, _Update], copies: Mapping[str, str], names: Names
) -> Iterator[Node]:
    """A step that writes what it updates to the second copy, and reads it there from then on."""
    copied: dict[int, list[Node]] = {}
    for name, update in moved.items():
        earlier = any(name in written(part) for part in loop.body[: update.part])
        boxes = [[(Const(int(a)), Const(int(b) + 1)) for a, b in box] for box in update.borders]
        strips = (_copy(name, copies[name], box, names) for box in boxes)
        copied.setdefault(update.part if earlier else 0, []).extend(strips)
    for number, part in enumerate(loop.body):
        yield from copied.get(number, ())
        node = rename_buffers(part, {n: copies[n] for n, update in moved.items() if update.part < number})
        for name in (n for n, update in moved.items() if update.part == number):
            node = _updated(node, name, copies[name])
        yield node


def _updated(node: Node, name: str, copy: str) -> Node:
    """The part that updates an array: its statements read what it was, up to the one that says what it is."""
    nest, body, done = band(node), list[Node](), False
    for statement in nest.statements:
        if statement.target.buffer == name:
            old, value = statement.target, statement.value
            value = value if statement.reduce is None else Op(statement.reduce, (old, value))
            body.append(Statement(Load(copy, old.indices), value))
            done = True
        else:
            body.append(rename_buffers(statement, {name: copy}) if done else statement)
    return rebuild(nest.loops, tuple(body))[0]


def _alternating(
    loop: Loop, copies: Mapping[str, str], buffers: dict[str, Buffer], names: Names
) -> Iterator[Node]:
    """The loop two steps at a time, from one copy to the other and back; where the number of steps is not
    known, an odd one is copied back. `buffers` gets what is local in each step of its own."""
    count, steps = simplify(Op("sub", (loop.stop, loop.start))), extent(loop)
    back = {**copies, **{copy: name for name, copy in copies.items()}}
    local = {n for n in written(loop) - flow(loop.body).exposed if buffers[n].scope == "local"}

    def step(after: Expr, renamed: Mapping[str, str]) -> Iterator[Node]:
        own = {name: names.fresh(name) for name in sorted(local)}
        buffers.update({new: replace(buffers[old], name=new) for old, new in own.items()})
        return _step(loop, simplify(Op("add", (loop.start, after))), {**renamed, **own}, names)

    for name, copy in copies.items():
        yield _copy(name, copy, whole_box(buffers[name]), names)
    first = Op("mul", (Const(2), Symbol(loop.iterator)))
    body = (*step(first, {}), *step(Op("add", (first, Const(1))), back))
    if steps is not None:
        yield replace(loop, start=Const(0), stop=Const(steps // 2), body=body)
        if steps % 2:
            yield from step(Const(steps - 1), {})
        return
    pairs = Op("floordiv", (Op("max", (count, Const(0))), Const(2)))
    yield replace(loop, start=Const(0), stop=pairs, body=body)
    odd = names.fresh(loop.iterator)
    body = tuple(step(Symbol(odd), {}))
    body += tuple(_copy(copy, name, whole_box(buffers[name]), names) for name, copy in copies.items())
    yield replace(loop, iterator=odd, start=simplify(Op("mul", (Const(2), pairs))), stop=count, body=body)


def _step(loop: Loop, time: Expr, renamed: Mapping[str, str], names: Names) -> Iterator[Node]:
    """A step of a loop, other buffers in the place of some."""
    iterators = {lp.iterator: names.fresh(lp.iterator) for lp in walk(loop.body) if isinstance(lp, Loop)}
    for node in loop.body:
        node = substitute_node(rename_buffers(node, renamed), {loop.iterator: time})
        yield rename_iterators(node, iterators)


def _copy(source: str, target: str, box: Sequence[tuple[Expr, Expr]], names: Names) -> Node:
    """Elements of an array from start to stop in each dimension, put where they are in another."""
    single = [simplify(Op("sub", (stop, start))) == Const(1) for start, stop in box]
    indices = tuple(
        start if one else Symbol(names.fresh("copied")) for (start, _), one in zip(box, single, strict=True)
    )
    node: Node = Statement(Load(target, indices), Load(source, indices))
    for index, (start, stop) in reversed(list(zip(indices, box, strict=True))):
        if isinstance(index, Symbol):
            node = Loop(index.name, start, stop, (node,))
    return node
