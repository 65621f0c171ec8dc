"""Elements that one iteration of a sequential loop stores and the next one reads, in scalars.

`for j: y[i, j] = 0.5 * y[i, j - 1] + x[i, j]` waits in every iteration for a store and a load of the same
element. With the last result in a scalar it waits for the arithmetic alone, and is what a program that was
written with a scalar is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import accesses, extent, mentions
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    expressions_of,
    loads,
    map_node,
    substitute,
    walk,
)
from gnnperf.schedules.recipes.time_tiles import is_time_loop
from gnnperf.schedules.recipes.vectors import in_bounds, loads_by_certainty

Block = tuple[Node, ...]


def carry_in_scalars(body: Block, buffers: dict[str, Buffer], fresh: Callable[[str], str]) -> Block:
    """The body, with scalars for what goes from one iteration to the next; `buffers` gets these, with names
    that `fresh` finds. Loops over time, whose steps are tiled together, stay."""
    return tuple(part for node in body for part in _carrying(node, buffers, fresh))


def _carrying(node: Node, buffers: dict[str, Buffer], fresh: Callable[[str], str]) -> Iterator[Node]:
    if isinstance(node, Statement) or is_time_loop(node, buffers):
        yield node
        return
    loop = replace(node, body=carry_in_scalars(node.body, buffers, fresh))
    position = 0
    while position < len(loop.body):
        if (before := _read_before(loop, position, buffers)) is not None:
            name = fresh(f"{before.buffer}_last")
            dtype = buffers[before.buffer].dtype
            buffers[name] = Buffer(name, dtype, (), (), transient=True, scope="local")
            first, loop = _with_scalar(loop, position, before, Load(name))
            yield first
        position += 1
    yield loop


def _with_scalar(loop: Loop, position: int, before: Load, last: Load) -> tuple[Statement, Loop]:
    """What the scalar holds ahead of the loop, and the loop with it."""
    body = [map_node(n, lambda e: last if e == before else e) for n in loop.body]
    store = body[position]
    assert isinstance(store, Statement)
    body[position : position + 1] = [replace(store, target=last), Statement(store.target, last)]
    return Statement(last, _first(loop, store.target)), replace(loop, body=tuple(body))


def _read_before(loop: Loop, position: int, buffers: Mapping[str, Buffer]) -> Load | None:
    """The element that the statement at a position of the loop's body stored one iteration ago, if the
    loop reads it ahead of the store, and nothing else stores into the array."""
    store = loop.body[position]
    if not isinstance(store, Statement) or store.reduce or store.guard is not None or loop.independent:
        return None
    target = store.target
    if loop.step != 1 or loop.condition is not None or any(map(loads, target.indices)):
        return None
    if not mentions(target, loop.iterator):
        return None
    if sum(a.is_write for a in accesses(loop) if a.load.buffer == target.buffer) > 1:
        return None
    before = _moved(target, Op("sub", (Symbol(loop.iterator), Const(1))), loop)
    ahead, behind = loop.body[: position + 1], loop.body[position + 1 :]
    if not _reads(ahead, before) or _reads(behind, before):
        return None
    # The first iteration may know better than to read what it has no predecessor for.
    plain = (n.value for n in ahead if isinstance(n, Statement) and n.guard is None)
    is_read = any(before in loads_by_certainty(value)[0] for value in plain)
    return before if is_read or in_bounds(_first_read(loop, target), {}, buffers) else None


def _moved(load: Load, to: Expr, loop: Loop) -> Load:
    return Load(load.buffer, tuple(simplify(substitute(i, {loop.iterator: to})) for i in load.indices))


def _reads(nodes: Block, wanted: Load) -> bool:
    return any(wanted in loads(e) for n in walk(nodes) for e in expressions_of(n))


def _first_read(loop: Loop, target: Load) -> Load:
    return _moved(target, Op("sub", (loop.start, Const(1))), loop)


def _first(loop: Loop, target: Load) -> Expr:
    """What the first iteration reads; nothing is read where there is none."""
    first = _first_read(loop, target)
    return first if extent(loop) else Op("select", (Op("lt", (loop.start, loop.stop)), first, Const(0)))
