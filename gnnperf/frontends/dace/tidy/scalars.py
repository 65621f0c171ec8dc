"""Local scalars as the expressions they stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gnnperf.frontends.dace.dtypes import expression_dtype
from gnnperf.frontends.dace.tidy.facts import (
    Block,
    Buffers,
    Code,
    Counts,
    any_written,
    guarded_alike,
    operations,
)
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import retarget
from gnnperf.nests.dtypes import value_dtype
from gnnperf.nests.ir import (
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    loads,
    reads,
    subexpressions,
)

MAX_REPEATED_OPERATIONS = 3
"""Arithmetic up to this size may be repeated rather than kept in a scalar."""

_SIMPLE = frozenset("add sub mul neg".split())

_WORDS = frozenset(("int32", "int64"))
"""What subscripts are computed in: no number of theirs is too large for the smaller one."""


def split_versions(block: Block, outside: Counts, code: Code) -> Block:
    """Give a local scalar that is set several times in one block a new name from each time on."""
    here = code.total(block)
    nodes = list(block)
    for name in [n for n in here.writes if code.is_local_scalar(n) and not outside.touches(n)]:
        touching = [i for i, n in enumerate(nodes) if code.of(n).touches(name)]
        settings = [i for i in touching if _sets(nodes[i], name)]
        if len(settings) < 2 or settings[0] != touching[0]:
            continue
        for position in reversed(settings[1:]):
            version = code.new_version(name)
            code.buffers[version] = replace(code.buffers[name], name=version)
            setting = nodes[position]
            assert isinstance(setting, Statement)
            nodes[position] = replace(setting, target=Load(version))
            for i in range(position + 1, len(nodes)):
                nodes[i] = retarget(nodes[i], name, Load(version))
    return tuple(nodes)


def _sets(node: Node, name: str) -> bool:
    plain = isinstance(node, Statement) and node.reduce is None and node.guard is None
    return plain and node.target.buffer == name  # type: ignore[union-attr]


def forward_scalars(block: Block, outside: Counts, code: Code) -> Block:
    """Replace a local scalar by the expression it was given, where that adds no work."""
    nodes = list(block)
    position = 0
    while position < len(nodes):
        node = nodes[position]
        if (
            isinstance(node, Statement)
            and node.reduce is None
            and _is_forwardable(node, nodes, outside, code)
        ):
            if _forward(nodes, position, node, code):
                del nodes[position]
                continue
        position += 1
    return tuple(nodes)


def _is_forwardable(producer: Statement, nodes: list[Node], outside: Counts, code: Code) -> bool:
    """A local scalar that is set once, and belongs to this block alone."""
    name = producer.target.buffer
    if not code.is_local_scalar(name) or outside.touches(name):
        return False
    return sum(code.of(n).writes[name] for n in nodes) == 1


def _forward(nodes: list[Node], position: int, producer: Statement, code: Code) -> bool:
    name = producer.target.buffer
    users = [i for i, n in enumerate(nodes) if code.of(n).uses[name]]
    if not users:
        return True
    if users[0] <= position:  # it carries a value from one iteration to the next
        return False
    sources = {ld.buffer for ld in reads(producer)}
    last = nodes[users[-1]]
    # A statement reads before it writes; a loop may write before it reads again.
    until = users[-1] if isinstance(last, Statement) else users[-1] + 1
    if any_written(nodes[position + 1 : until], sources, code):
        return False
    if not all(guarded_alike(nodes[i], name, producer.guard) for i in users):
        return False
    if not _is_cheap(producer, code.buffers):
        repeated = any(isinstance(nodes[i], Loop) and code.total(nodes[i].body).uses[name] for i in users)  # type: ignore[union-attr]
        if repeated or sum(code.of(nodes[i]).uses[name] for i in users) > 1:
            return False
    held = converted(producer.value, code.buffers[name].dtype, code.buffers)
    for i in users:
        value = producer.value if _stays(nodes[i], producer, code.buffers) else held
        nodes[i] = retarget(nodes[i], name, value)
    return True


def _stays(node: Node, producer: Statement, buffers: Buffers) -> bool:
    """Is a statement all in the scalar's type, so that its expression has that value there, too? Literals
    take the type of the statement; of integers, storing one is the same conversion."""
    name, dtype = producer.target.buffer, buffers[producer.target.buffer].dtype
    if not isinstance(node, Statement) or buffers[node.target.buffer].dtype != dtype:
        return False
    if dtype.startswith(("int", "uint")):
        return node.value == producer.target and node.reduce is None
    elsewhere = (node.guard, node.init, *node.target.indices)
    if any(ld.buffer == name for e in elsewhere if e is not None for ld in loads(e)):
        return False
    return value_dtype(node.value, buffers) == value_dtype(producer.value, buffers) == dtype


def _is_cheap(producer: Statement, buffers: Buffers) -> bool:
    """As cheap to repeat as to keep: a load; a little integer arithmetic on at most one (an address); a
    little arithmetic on the kernel's scalars (the compiler moves it out of loops), or on iterators."""
    found, count = set(loads(producer.value)), operations(producer.value)
    dtype = buffers[producer.target.buffer].dtype
    if dtype in _WORDS and not found:  # a neighbour's place: `i + 1 if i + 1 < n else 0`
        return operations(simplify(producer.value)) <= 5 * MAX_REPEATED_OPERATIONS
    if dtype == "bool" and not found:
        return count <= 4 * MAX_REPEATED_OPERATIONS  # within an image: a matter of where loops begin and end
    if count == 0 or count > MAX_REPEATED_OPERATIONS:
        return count == 0 and len(found) <= 1
    if dtype.startswith(("int", "uint")) and len(found) <= 1:
        return True
    scalars = all(not buffers[ld.buffer].shape and buffers[ld.buffer].scope == "global" for ld in found)
    names = {e.name for e in subexpressions(producer.value) if isinstance(e, Op)}
    return bool(found) and scalars and names <= _SIMPLE


def converted(value: Expr, dtype: str, buffers: Buffers) -> Expr:
    """The value as the scalar would have held it."""
    found = expression_dtype(value, buffers)
    if (
        found == dtype
        or {found, dtype} <= _WORDS
        or (isinstance(value, Const) and _holds(dtype, value.value))
    ):
        return value
    return Op(f"cast:{dtype}", (value,))


def _holds(dtype: str, number: int | float | bool | complex) -> bool:
    """Is a literal the same number there, precision aside?"""
    if dtype.startswith("float"):
        return True
    if not dtype.startswith(("int", "uint")) or not isinstance(number, int):
        return False
    limits = np.iinfo(dtype)
    return int(limits.min) <= number <= int(limits.max)
