"""Branches as conditional values."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from gnnperf.frontends.dace.tidy.facts import (
    Block,
    Code,
    Counts,
    carried_states,
    guarded_alike,
    instead,
)
from gnnperf.nests.analysis import conjunction, conjuncts, negated, read, retarget, written
from gnnperf.nests.ir import EXPRESSIONS_KEPT, Const, Expr, Load, Node, Op, Statement, loads, map_expr, reads


def merge_arms(block: Block, outside: Counts, code: Code) -> Block:
    """`if c: x = a` and `if not c: x = b` become `x = select(c, a, b)`; `x = a; if c: x = b` too.

    A scalar of the block's own that is used between the two has a name of its own until then."""
    nodes = list(block)
    position = 0
    while position < len(nodes):
        if not _merge_at(nodes, position, outside, code):
            position += 1
    return tuple(nodes)


def _merge_at(nodes: list[Node], position: int, outside: Counts, code: Code) -> bool:
    first = nodes[position]
    if not isinstance(first, Statement):
        return False
    name = first.target.buffer
    for later in range(position + 1, len(nodes)):
        second = nodes[later]
        between = nodes[position + 1 : later]
        if isinstance(second, Statement) and second.target == first.target:
            merged = _merged(first, second)
            if merged is not None and _can_move_up(second, between):
                nodes[position] = merged
                del nodes[later]
                return True
            return (
                code.is_local_scalar(name)
                and not outside.touches(name)
                and _hold(nodes, position, later, code)
            )
        if name in written(second) or not guarded_alike(second, name, first.guard):
            return False
    return False


def _merged(first: Statement, second: Statement) -> Statement | None:
    one, two = conjuncts(first.guard), conjuncts(second.guard)
    if second.reduce != first.reduce:
        return None
    if any(ld.buffer == first.target.buffer for condition in (*one, *two) for ld in loads(condition)):
        return None  # the first store may change whether the second one happens
    if one and two and one[:-1] == two[:-1] and two[-1] == negated(one[-1]):
        value = choice(one[-1], first.value, second.value)
        return replace(first, value=value, guard=conjunction(one[:-1]))
    if first.reduce is None and len(two) == len(one) + 1 and two[: len(one)] == one:
        if first.target.buffer not in {ld.buffer for ld in reads(second)}:
            return replace(first, value=choice(two[-1], second.value, first.value))
    return None


def _can_move_up(statement: Statement, between: list[Node]) -> bool:
    needed = {ld.buffer for ld in reads(statement)}
    return all(
        needed.isdisjoint(written(n)) and statement.target.buffer not in read(n) | written(n) for n in between
    )


def _hold(nodes: list[Node], position: int, later: int, code: Code) -> bool:
    """Merge two stores to a scalar at the place of the second one: what the first one stores is held in
    another scalar, which is what is used between them."""
    first, second = nodes[position], nodes[later]
    assert isinstance(first, Statement) and isinstance(second, Statement)
    name, one = first.target.buffer, conjuncts(first.guard)
    if first.reduce is not None or second.reduce not in (None, "add", "mul", "min", "max"):
        return False
    conditions = {ld.buffer for condition in one for ld in loads(condition)}
    if name in conditions or any(not conditions.isdisjoint(written(n)) for n in nodes[position + 1 : later]):
        return False
    held = Load(code.new_version(name))
    new = second.value if second.reduce is None else Op(second.reduce, (second.target, second.value))
    new, *two = (instead(e, second.target, held) for e in (new, *conjuncts(second.guard)))
    if len(two) == len(one) + 1 and two[:-1] == one:
        value = choice(two[-1], new, held)
    elif one and one[:-1] == two[:-1] and two[-1] == negated(one[-1]) and held not in loads(new):
        value = choice(one.pop(), held, new)
    else:
        return False
    code.buffers[held.buffer] = replace(code.buffers[name], name=held.buffer)
    nodes[position] = replace(first, target=held)
    for i in range(position + 1, later):
        nodes[i] = retarget(nodes[i], name, held)
    nodes[later] = replace(second, value=value, guard=conjunction(one), reduce=None)
    return True


def choice(condition: Expr, one: Expr, other: Expr) -> Expr:
    """`select`, where the condition decides choices within the two, too."""
    if isinstance(condition, Op) and condition.name == "not":
        condition, one, other = condition.args[0], other, one
    one, other = _given(one, condition), _given(other, negated(condition))
    return one if one == other else Op("select", (condition, one, other))


@lru_cache(EXPRESSIONS_KEPT)
def _given(expr: Expr, condition: Expr) -> Expr:
    """An expression where a condition holds."""

    def decided(e: Expr) -> Expr:
        match e:
            case Op("select", (asked, one, _)) if asked == condition:
                return one
            case Op("select", (asked, _, other)) if asked == negated(condition):
                return other
        return e

    return map_expr(expr, decided)


def decide(block: Block, outside: Counts, code: Code) -> Block:
    """Choices that are decided around them are made: `select(c, select(c, a, b), d)` is `select(c, a, d)`."""
    return tuple(_decided(n) if isinstance(n, Statement) else n for n in block)


def _decided(statement: Statement) -> Statement:
    value = _simplest(statement.value)
    for condition in conjuncts(statement.guard):
        value = _given(value, condition)
    return statement if value == statement.value else replace(statement, value=value)


@lru_cache(EXPRESSIONS_KEPT)  # of every statement, in every round
def _simplest(expr: Expr) -> Expr:
    return map_expr(expr, lambda e: choice(*e.args) if isinstance(e, Op) and e.name == "select" else e)


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
