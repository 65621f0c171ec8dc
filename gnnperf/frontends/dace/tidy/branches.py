"""Branches as conditional values."""

from __future__ import annotations

from dataclasses import replace

from gnnperf.frontends.dace.tidy.facts import Block, Code, Counts, carried_states, conjunction
from gnnperf.nests.analysis import conjuncts, read, written
from gnnperf.nests.ir import Const, Node, Op, Statement, loads, reads


def merge_arms(block: Block, outside: Counts, code: Code) -> Block:
    """`if c: x = a` and `if not c: x = b` become `x = select(c, a, b)`; `x = a; if c: x = b` too."""
    nodes = list(block)
    position = 0
    while position < len(nodes):
        if not _merge_at(nodes, position, code):
            position += 1
    return tuple(nodes)


def _merge_at(nodes: list[Node], position: int, code: Code) -> bool:
    first = nodes[position]
    if not isinstance(first, Statement):
        return False
    for later in range(position + 1, len(nodes)):
        second = nodes[later]
        if isinstance(second, Statement) and second.target == first.target and second.reduce == first.reduce:
            merged = _merged(first, second)
            if merged is not None and _can_move_up(second, nodes[position + 1 : later]):
                nodes[position] = merged
                del nodes[later]
                return True
        if code.of(second).touches(first.target.buffer):
            return False
    return False


def _merged(first: Statement, second: Statement) -> Statement | None:
    one, two = conjuncts(first.guard), conjuncts(second.guard)
    if any(ld.buffer == first.target.buffer for condition in (*one, *two) for ld in loads(condition)):
        return None  # the first store may change whether the second one happens
    if one and two and one[:-1] == two[:-1]:
        c, d = one[-1], two[-1]
        for holds, fails, a, b in ((c, d, first, second), (d, c, second, first)):
            if fails == Op("not", (holds,)):
                value = Op("select", (holds, a.value, b.value))
                return replace(first, value=value, guard=conjunction(one[:-1]))
    if first.reduce is None and len(two) == len(one) + 1 and two[: len(one)] == one:
        if first.target.buffer not in {ld.buffer for ld in reads(second)}:
            return replace(first, value=Op("select", (two[-1], second.value, first.value)))
    return None


def _can_move_up(statement: Statement, between: list[Node]) -> bool:
    needed = {ld.buffer for ld in reads(statement)}
    return all(
        needed.isdisjoint(written(n)) and statement.target.buffer not in read(n) | written(n) for n in between
    )


def choose(block: Block, outside: Counts, code: Code) -> Block:
    """`if c: x = v` is `x = select(c, v, x)`, and `if c: x += v` is `x += select(c, v, 0)`, for scalars in a
    block that carries some from one iteration to the next, where v reads scalars: lanes do not branch."""
    chosen = tuple(_chosen(n, code) if isinstance(n, Statement) else n for n in block)
    return chosen if chosen != block and carried_states(block, code) else block


def _chosen(statement: Statement, code: Code) -> Statement:
    name, guard = statement.target.buffer, statement.guard
    if guard is None or statement.reduce not in (None, "add") or not code.is_local_scalar(name):
        return statement
    if not all(code.is_local_scalar(ld.buffer) for ld in loads(statement.value)):
        return statement
    otherwise = statement.target if statement.reduce is None else Const(0)
    return replace(statement, value=Op("select", (guard, statement.value, otherwise)), guard=None)
