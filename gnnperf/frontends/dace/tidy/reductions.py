"""Accumulations as reductions, and results computed where they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gnnperf.frontends.dace.tidy.facts import Block, Code, Counts, any_written, carried_states
from gnnperf.nests.analysis import retarget
from gnnperf.nests.dtypes import is_integer
from gnnperf.nests.ir import Const, Expr, Load, Loop, Node, Op, Reduction, Statement, loads, walk

_NEUTRAL: Mapping[str, float] = {"add": 0, "mul": 1}


def find_reductions(block: Block, outside: Counts, code: Code) -> Block:
    """`x = x + e` is `x += e` where `e` does not read `x`."""
    return tuple(
        _as_reduction(n, code) if isinstance(n, Statement) and n.reduce is None else n for n in block
    )


def combining(statement: Statement) -> Statement:
    """The same where `e` reads other elements of the array: loops that never come to the element itself may
    run in any order."""
    if statement.reduce is not None or not statement.target.indices:
        return statement
    kind, rest = _combined(statement)
    return statement if rest is None else replace(statement, value=rest, reduce=kind)


def _as_reduction(statement: Statement, code: Code) -> Statement:
    extreme = _extreme(statement)
    if extreme is not None:
        return replace(statement, reduce=extreme, guard=None)
    kind, rest = _combined(statement)
    if rest is None and is_integer(code.buffers[statement.target.buffer].dtype):
        rest = _rest_of_sum(_unwidened(statement.value, statement.target), statement.target)
    if rest is None or any(ld.buffer == statement.target.buffer for ld in loads(rest)):
        return statement
    return replace(statement, value=rest, reduce=kind)


def _combined(statement: Statement) -> tuple[Reduction, Expr | None]:
    """What a statement adds to its target, or combines it with, and by which operation."""
    rest = _rest_of_sum(statement.value, statement.target)
    match statement.value:
        case Op(name="mul" | "min" | "max" as kind, args=(left, right)) if statement.target in (left, right):
            return kind, right if left == statement.target else left
    return "add", rest


def _extreme(statement: Statement) -> Reduction | None:
    """`if e < x: x = e` is a minimum, `if e > x: x = e` a maximum (for numbers that are not NaN, as with
    the compiler's fast-math)."""
    match statement.guard:
        case Op(name="lt" | "le" | "gt" | "ge" as comparison, args=(left, right)):
            pass
        case _:
            return None
    if any(ld.buffer == statement.target.buffer for ld in loads(statement.value)):
        return None
    smaller = comparison in ("lt", "le")
    if (left, right) == (statement.value, statement.target):
        return "min" if smaller else "max"
    if (left, right) == (statement.target, statement.value):
        return "max" if smaller else "min"
    return None


def _rest_of_sum(value: Expr, target: Load) -> Expr | None:
    """What is added to `target` in a chain of sums that starts from it; None if it is not one."""
    if not isinstance(value, Op) or value.name not in ("add", "sub"):
        return None
    left, right = value.args
    if left == target:
        return right if value.name == "add" else Op("neg", (right,))
    if right == target and value.name == "add":
        return left
    rest = _rest_of_sum(left, target)
    if rest is not None:
        return Op(value.name, (rest, right))
    rest = _rest_of_sum(right, target) if value.name == "add" else None
    return None if rest is None else Op("add", (left, rest))


def _unwidened(value: Expr, target: Load) -> Expr:
    """A chain of sums with the target as narrow as it is: integers wrap around when stored in any case."""
    match value:
        case Op(name="add" | "sub" as name, args=(left, right)):
            return Op(name, (_unwidened(left, target), _unwidened(right, target)))
        case Op(name="cast:int64" | "cast:uint64", args=(arg,)) if arg == target:
            return target
    return value


def write_through(block: Block, outside: Counts, code: Code) -> Block:
    """Compute in place what was computed in a local scalar and then stored: `t = 0; t += ...; y[i] = t`."""
    nodes = list(block)
    position = len(nodes) - 1
    while position > 0:
        start = _start_of_computation(nodes, position, outside, code)
        if start is not None:
            store = nodes[position]
            assert isinstance(store, Statement) and isinstance(store.value, Load)
            kept = nodes[start:position] if store.reduce is None else nodes[start + 1 : position]
            nodes[start : position + 1] = [retarget(n, store.value.buffer, store.target) for n in kept]
            position = len(nodes)
        position -= 1
    return tuple(nodes)


def _start_of_computation(nodes: list[Node], position: int, outside: Counts, code: Code) -> int | None:
    """Where the scalar that `nodes[position]` stores gets its first value, if all it does from there on
    may happen in the stored element instead."""
    store = nodes[position]
    if not isinstance(store, Statement) or not isinstance(store.value, Load) or store.guard is not None:
        return None
    name = store.value.buffer
    if not code.is_local_scalar(name) or code.buffers[name].dtype != code.buffers[store.target.buffer].dtype:
        return None
    touching = [i for i, n in enumerate(nodes) if code.of(n).touches(name)]
    first = touching[0]
    if outside.touches(name) or touching[-1] != position or first == position:
        return None
    region = nodes[first:position]
    if any(code.of(n).touches(store.target.buffer) for n in region):
        return None
    if any(carried_states(n.body, code) for n in walk(tuple(region)) if isinstance(n, Loop)):
        return None  # nothing is gained by taking such a loop apart: what it computes belongs in registers
    if any_written(region, (ld.buffer for i in store.target.indices for ld in loads(i)), code):
        return None
    start = nodes[first]
    if not isinstance(start, Statement) or start.reduce is not None or start.guard is not None:
        return None
    if store.reduce is not None and not _accumulates(region, name, store.reduce, start, code):
        return None
    return first


def _accumulates(region: list[Node], name: str, kind: Reduction, start: Statement, code: Code) -> bool:
    """The scalar starts from the neutral element and is only combined with, by the same operation."""
    if not isinstance(start.value, Const) or start.value.value != _NEUTRAL.get(kind):
        return False
    rest = [s for s in walk(tuple(region[1:])) if isinstance(s, Statement)]
    combining = all(s.reduce == kind for s in rest if s.target.buffer == name)
    return combining and not code.total(region).uses[name]
