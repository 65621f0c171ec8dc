"""Undo linearisation: a loop over `n * m` points that divides its iterator is two loops.

Reshapes (`einsum`, `reshape`, flattened batches) leave subscripts like `A[x // m, x % m]`, which hide
strides from everything that looks at them. With x = m * x1 + x0 they are `A[x1, x0]` again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gnnperf.nests.affine import affine, constant, from_affine, simplify
from gnnperf.nests.analysis import extent, mentioned
from gnnperf.nests.ir import (
    Const,
    Expr,
    Loop,
    Node,
    Op,
    Symbol,
    expressions_of,
    map_expr,
    map_node,
    subexpressions,
    substitute_node,
    walk,
)  # fmt: skip
from gnnperf.nests.names import free_name
from gnnperf.nests.ranges import Loops, loops_of, value_range


def delinearise(node: Node, around: Loops | None = None) -> Node:
    """Split every independent loop whose iterator is divided by a divisor of its extent, and resolve
    the divisions that the ranges of the iterators decide. `around`: the loops that enclose the node."""
    around = around or {}
    if not isinstance(node, Loop):
        return map_node(node, lambda e: _division(e, around))
    size, start = extent(node), constant(node.start)
    if size and start == 0 and node.step == 1 and node.independent:
        for divisor in sorted(_divisors(node)):
            if 1 < divisor < size and size % divisor == 0:
                return delinearise(_split(node, divisor, size, around), around)
    start_, stop = (map_expr(e, lambda x: _division(x, around)) for e in (node.start, node.stop))
    node = replace(node, start=start_, stop=stop)
    inside = {**around, node.iterator: [node]}
    done = replace(node, body=tuple(delinearise(n, inside) for n in node.body))
    # A quotient that is an iterator may be divided in turn: x // 10 % 10.
    return done if done == node else delinearise(done, around)


def _split(loop: Loop, divisor: int, size: int, around: Loops) -> Loop:
    taken = {*around, *mentioned(loop), *loops_of((loop,))}
    outer, inner = (free_name(f"{loop.iterator}_{suffix}", taken) for suffix in "qm")
    value = Op("add", (Op("mul", (Const(divisor), Symbol(outer))), Symbol(inner)))
    body = tuple(substitute_node(n, {loop.iterator: value}) for n in loop.body)
    point = Loop(inner, Const(0), Const(divisor), body)
    return Loop(outer, Const(0), Const(size // divisor), (point,))


def _divisors(loop: Loop) -> Iterator[int]:
    """Constants by which the loop's iterator itself is divided somewhere below."""
    for node in walk(loop.body):
        for root in expressions_of(node):
            for expr in subexpressions(root):
                if isinstance(expr, Op) and expr.name in ("floordiv", "mod"):
                    divisor = constant(expr.args[1])
                    if divisor and _uneven(expr.args[0], divisor) == {Symbol(loop.iterator)}:
                        yield divisor


def _uneven(expr: Expr, divisor: int) -> set[Expr]:
    """What the remainder depends on. Of several iterators, as `(i + j) % 2`, it stays what it is however
    their loops are split."""
    return {atom for atom, coefficient in affine(expr).terms.items() if coefficient % divisor}


def _division(expr: Expr, around: Loops) -> Expr:
    """`floordiv` and `mod` by a constant where the remainder's range is known."""
    if not isinstance(expr, Op) or expr.name not in ("floordiv", "mod"):
        return expr
    divisor = constant(expr.args[1])
    if not divisor or divisor < 0:
        return expr
    quotient, rest = affine(simplify(expr.args[0])).divided(divisor)
    low, high = value_range(from_affine(rest), around)
    if low < 0 or high >= divisor:
        return expr
    return from_affine(rest if expr.name == "mod" else quotient)
