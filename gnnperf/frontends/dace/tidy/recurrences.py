"""Scalars that go from one iteration of a loop to the next, and whose value in an iteration is known ahead:
counters, and what the iteration before has seen.

    k = 0                               for i in 0..n:
    for i in 0..n:                          y[i] = x[2 * i] + select(i > 0, b[i - 1], before)
        y[i] = x[k] + before
        before = b[i]
        k += 2
"""

from __future__ import annotations

from dataclasses import replace

from gnnperf.frontends.dace.tidy.facts import Block, Code, Counts, instead, operations
from gnnperf.frontends.dace.tidy.scalars import converted
from gnnperf.nests.affine import constant, simplify
from gnnperf.nests.analysis import retarget, written
from gnnperf.nests.ir import Const, Expr, Load, Loop, Node, Op, Statement, Symbol, loads, substitute

MAX_OPERATIONS = 16
"""What the iteration before has computed is computed again, up to this size: iterations wait for each other
otherwise."""


def know_ahead(block: Block, outside: Counts, code: Code) -> Block:
    """Uses of such scalars in loops as what they are there; after the loop they have their last value."""
    nodes: list[Node] = []
    for node in block:
        nodes += _known_in(node, code) if isinstance(node, Loop) else [node]
    return tuple(nodes)


def _known_in(loop: Loop, code: Code) -> list[Node]:
    after: list[Node] = []
    if loop.step == 1 and loop.condition is None:
        for name in sorted(written(loop)):
            places = [i for i, n in enumerate(loop.body) if code.of(n).writes[name]]
            if code.is_local_scalar(name) and _is_carried(loop, name, places[0], code):
                found = _counter(loop, name, places, code) or _seen_before(loop, name, places, code)
                if found is not None:
                    loop, last = found
                    after.append(Statement(Load(name), last))
    return [loop, *after]


def _is_carried(loop: Loop, name: str, first: int, code: Code) -> bool:
    """Does an iteration need what the one before has left, before or where it first stores the scalar?"""
    store = loop.body[first]
    adds = isinstance(store, Statement) and store.reduce is not None
    return adds or any(code.of(n).uses[name] for n in loop.body[: first + 1])


def _counter(loop: Loop, name: str, places: list[int], code: Code) -> tuple[Loop, Expr] | None:
    """Where every iteration adds the same numbers."""
    steps: dict[int, float] = {}
    for i in places:
        node = loop.body[i]
        if not isinstance(node, Statement) or node.guard is not None or node.init is not None:
            return None
        by = _added(node, _resolved(loop, i, node.value, code))
        if by is None:
            return None
        steps[i] = by
    each, value, is_whole = sum(steps.values()), Load(name), code.buffers[name].dtype.startswith("int")
    if is_whole and not isinstance(each, int):
        return None

    def at(iterations: Expr, ahead: float) -> Expr:
        turns = Op("add", (Op("mul", (Const(each), iterations)), Const(ahead)))
        return simplify(Op("add", (value, turns))) if is_whole else Op("add", (value, turns))

    body: list[Node] = []
    ahead, turn = 0.0 if not is_whole else 0, simplify(Op("sub", (Symbol(loop.iterator), loop.start)))
    for i, node in enumerate(loop.body):
        ahead += steps.get(i, 0)
        if i not in steps:
            body.append(retarget(node, name, at(turn, ahead)))
    length = simplify(Op("max", (Op("sub", (loop.stop, loop.start)), Const(0))))
    return replace(loop, body=tuple(body)), at(length, 0)


def _added(statement: Statement, value: Expr) -> float | None:
    """The number that a statement adds to its target."""
    if statement.reduce == "add":
        return value.value if isinstance(value, Const) and isinstance(value.value, int | float) else None
    match value:
        case Op("add", (target, Const(value=int() | float() as by))) | Op(
            "add", (Const(value=int() | float() as by), target)
        ) if target == statement.target and statement.reduce is None:
            return by
    return constant(Op("sub", (value, statement.target))) if statement.reduce is None else None


def _seen_before(loop: Loop, name: str, places: list[int], code: Code) -> tuple[Loop, Expr] | None:
    """Where the last thing that an iteration does with the scalar is to set it to what is made of arrays that
    the loop does not change."""
    trips = constant(Op("sub", (loop.stop, loop.start)))
    if len(places) != 1 or trips is None or trips < 1:
        return None
    (place,) = places
    store = loop.body[place]
    if not isinstance(store, Statement) or store.guard is not None or store.reduce is not None:
        return None
    users = [i for i, n in enumerate(loop.body) if code.of(n).uses[name]]
    value = _resolved(loop, place, store.value, code)
    if not users or users[-1] >= place or operations(value) > MAX_OPERATIONS:
        return None
    if not written(loop).isdisjoint(ld.buffer for ld in loads(value)):
        return None
    seen = converted(value, code.buffers[name].dtype, code.buffers)

    def seen_in(iteration: Expr) -> Expr:
        return substitute(seen, {loop.iterator: iteration})

    first = Op("gt", (Symbol(loop.iterator), loop.start))
    before = Op("select", (first, seen_in(Op("sub", (Symbol(loop.iterator), Const(1)))), Load(name)))
    body = tuple(retarget(n, name, before) for i, n in enumerate(loop.body) if i != place)
    return replace(loop, body=body), seen_in(Op("sub", (loop.stop, Const(1))))


def _resolved(loop: Loop, place: int, value: Expr, code: Code) -> Expr:
    """The value, with what an iteration has set other scalars to in their place."""
    stores = code.total(loop.body).writes
    for i in reversed(range(place)):
        node = loop.body[i]
        if isinstance(node, Statement) and node.guard is None and node.reduce is None:
            name = node.target.buffer
            if code.is_local_scalar(name) and stores[name] == 1:
                value = instead(
                    value, node.target, converted(node.value, code.buffers[name].dtype, code.buffers)
                )
    return value
