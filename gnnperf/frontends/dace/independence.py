"""Which sequential loops may run their iterations in any order, and where private data lives."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.dace.tidy.reductions import combining
from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.affine import Affine, Ranges, affine, constant, simplify
from gnnperf.nests.analysis import access_counts, accesses, mentions, touched
from gnnperf.nests.coverage import own_of_iterations
from gnnperf.nests.ir import (
    Buffer,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
    map_expr,
    row_major,
    walk,
)  # fmt: skip
from gnnperf.nests.normalise import normalise
from gnnperf.nests.ranges import Loops, loops_of

Block = tuple[Node, ...]

MAX_PRIVATE_BYTES = 256 << 10
"""Private arrays live on the stack of a thread."""


def mark_independent(body: Block, buffers: Mapping[str, Buffer], ranges: Ranges) -> Block:
    """Set `Loop.independent` where no iteration touches what another one writes."""

    def visit(block: Block) -> Block:
        return tuple(loop(n) if isinstance(n, Loop) else n for n in block)

    def loop(node: Loop) -> Loop:
        node = replace(node, body=visit(node.body))
        if node.independent or _independent(node, body, buffers, ranges):
            return replace(node, independent=True)
        made = replace(node, body=tuple(map(_combining, node.body)))
        if made != node and _independent(made, body, buffers, ranges):
            return replace(made, independent=True)
        return node

    return visit(body)


def _combining(node: Node) -> Node:
    if isinstance(node, Statement):
        return combining(node)
    return replace(node, body=tuple(map(_combining, node.body)))


def _independent(loop: Loop, root: Block, buffers: Mapping[str, Buffer], ranges: Ranges) -> bool:
    if loop.condition is not None:
        return False
    inside = list(accesses(loop))
    own = own_of_iterations(loop, buffers, access_counts(root))
    inner = loops_of(loop.body)
    for name in {a.load.buffer for a in inside if a.is_write} - own:
        touching = [a for a in inside if a.load.buffer == name]
        # The order of combinations of one kind does not matter.
        ordered = [a for a in touching if not a.is_write] if _are_combined(loop, name) else touching
        first = [_in_iteration("one", a.load, own) for a in touching if a.is_write]
        second = [_in_iteration("other", a.load, own) for a in ordered]
        if not all(
            _apart(one, other, loop, inner, ranges) or _misses(other, one, loop, inner)
            for one in first
            for other in second
        ):
            return False
    return True


def _in_iteration(name: str, load: Load, own: Collection[str]) -> Load:
    """The load, where what each iteration has of its own, as k in `y[i + k]`, is a number of this one."""

    def held(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in own:
            return Symbol(f"{expr.buffer} of {name} iteration")
        return expr

    made = map_expr(load, held) if own else load
    assert isinstance(made, Load)
    return made


def _are_combined(loop: Loop, name: str) -> bool:
    """Are all stores into an array reductions of one kind?"""
    kinds = {s.reduce for s in walk(loop.body) if isinstance(s, Statement) and s.target.buffer == name}
    return len(kinds) == 1 and None not in kinds


def _apart(one: Load, two: Load, loop: Loop, inner: Loops, ranges: Ranges) -> bool:
    """Do the accesses of different iterations always differ? Every dimension says how far apart two
    iterations may be that meet in it; they meet nowhere if no distance suits all dimensions."""
    low, high = -inf, inf
    first: Expr | None = None
    second: Expr | None = None
    for a, b in zip(one.indices, two.indices, strict=True):
        least, most = _distances(a, b, loop, inner, ranges)
        low, high = max(low, least), min(high, most)
        first = first or _iteration(a, b, loop, inner)
        second = second or _iteration(b, a, loop, inner)
    if first is not None and second is not None:
        between = constant(Op("sub", (second, first)))
        if between is not None:
            low, high = max(low, between), min(high, between)
    return low > high or (-loop.step < low and high < loop.step)


def _iteration(one: Expr, two: Expr, loop: Loop, inner: Loops) -> Expr | None:
    """The only iteration where subscript `one` may equal subscript `two`, which is the same in all."""
    if affine(one).coefficient(loop.iterator) != 1 or mentions(two, loop.iterator):
        return None
    rest = Op("sub", (one, Symbol(loop.iterator)))
    if any(mentions(expr, name) for expr in (simplify(rest), two) for name in (loop.iterator, *inner)):
        return None
    return Op("sub", (two, rest))


def _misses(one: Load, two: Load, loop: Loop, inner: Loops) -> bool:
    """Would the loop have to begin earlier, or to go on, for `one` to be `two`, which stands still? (`x[j]`,
    with j below i, is never `x[i]`.)"""
    for a, b in zip(one.indices, two.indices, strict=True):
        meeting = _iteration(a, b, loop, inner)
        if meeting is None:
            continue
        after, before = (constant(Op("sub", ends)) for ends in ((meeting, loop.stop), (loop.start, meeting)))
        if (after is not None and after >= 0) or (before is not None and before > 0):
            return True
    return False


def _beyond(one: Affine, two: Affine, loop: Loop, inner: Loops) -> tuple[float, float] | None:
    """As `_distances`, where one subscript is the loop's own iterator, and the other that of a loop inside
    whose bounds move with it: what is right of the diagonal is above it where rows and columns change places.
    """
    low, high = -inf, inf
    for own, other, sign in ((one, two, 1), (two, one, -1)):
        moving = {atom for atom in other.terms if isinstance(atom, Symbol) and atom.name in inner}
        if set(own.terms) != {Symbol(loop.iterator)} or len(moving) != 1 or set(other.terms) != moving:
            continue
        (column,) = moving
        columns = inner[column.name]
        if own.coefficient(loop.iterator) != 1 or other.terms[column] != 1 or len(columns) != 1:
            continue
        shift = own.constant - other.constant
        start, stop = affine(columns[0].start), affine(columns[0].stop)
        if set(start.terms) == set(own.terms) and start.coefficient(loop.iterator) == 1:
            end = sign * (shift - start.constant)
            low, high = (low, min(high, end)) if sign > 0 else (max(low, end), high)
        if set(stop.terms) == set(own.terms) and stop.coefficient(loop.iterator) == 1:
            end = sign * (shift - stop.constant + 1)
            low, high = (max(low, end), high) if sign > 0 else (low, min(high, end))
    return (low, high) if (low, high) != (-inf, inf) else None


def _distances(one: Expr, two: Expr, loop: Loop, inner: Loops, ranges: Ranges) -> tuple[float, float]:
    """Bounds of j - i, where subscript `one` in iteration i may equal subscript `two` in iteration j."""
    unknown = -inf, inf
    first, second = affine(one), affine(two)
    if (beyond := _beyond(first, second, loop, inner)) is not None:
        return beyond
    factor = first.coefficient(loop.iterator)
    if factor == 0 or factor != second.coefficient(loop.iterator):
        return unknown
    low = high = first.constant - second.constant
    for form, sign in ((first, 1), (second, -1)):
        for atom, coefficient in form.terms.items():
            if atom == Symbol(loop.iterator):
                continue
            if isinstance(atom, Symbol) and atom.name in inner:  # differs between the two iterations
                if atom.name not in ranges:
                    return unknown
                ends = sorted(sign * coefficient * v for v in ranges[atom.name])
                low, high = low + ends[0], high + ends[1]
            elif any(mentions(atom, name) for name in {loop.iterator, *inner}):
                return unknown
    fixed = {
        atom: first.terms.get(atom, 0) - second.terms.get(atom, 0)
        for atom in {*first.terms, *second.terms}
        if not (isinstance(atom, Symbol) and atom.name in {loop.iterator, *inner})
    }
    if any(fixed.values()):
        return unknown
    least, most = sorted((low / factor, high / factor))
    return least, most


def place_private(body: Block, buffers: dict[str, Buffer], ranges: Ranges) -> None:
    """Decide where private arrays live: on the stack inside the independent loop that they belong to,
    or in scratch memory where no loop runs them in parallel. Extents that vary with a loop become
    their largest value. Changes `buffers`."""
    large: dict[str, int] = {}
    for name in {a.load.buffer for n in body for a in accesses(n)}:
        buffer = buffers[name]
        if buffer.scope != "local" or not buffer.shape:
            continue
        shape = tuple(_largest(size, ranges) for size in buffer.shape)
        count = math.prod(shape)
        buffer = replace(buffer, shape=shape, strides=row_major(shape))
        if not _inside_independent(body, name):
            buffer = replace(buffer, scope="global", transient=True)
        elif count * ELEMENT_BYTES[buffer.dtype] > MAX_PRIVATE_BYTES:
            large[name] = count
        buffers[name] = buffer
    if left := large.keys() & _left_in_normal_form(body, buffers) if large else ():
        raise UnsupportedConstruct(f"a private array of {large[min(left)]} elements in every iteration")


def _left_in_normal_form(body: Block, buffers: Mapping[str, Buffer]) -> set[str]:
    """Buffers that are not only on the way to others (`C[b] = A[b] @ B[b]`)."""
    used = {name: buffers[name] for node in body for name in touched(node)}
    visible = {n: replace(b, transient=b.transient and b.scope == "local") for n, b in used.items()}
    nest = normalise(LoopNest("", visible, tuple(body)))
    return {name for node in nest.body for name in touched(node)}


def _largest(size: int | Expr, ranges: Ranges) -> int:
    bounds = (size, size) if isinstance(size, int) else affine(size).reach(ranges)
    if bounds is None:
        raise UnsupportedConstruct("a temporary array whose size depends on data")
    return max(1, bounds[1])


def _inside_independent(block: Block, name: str) -> bool:
    users = [n for n in block if any(a.load.buffer == name for a in accesses(n))]
    if len(users) != 1 or not isinstance(users[0], Loop):
        return False
    return users[0].independent or _inside_independent(users[0].body, name)
