"""Undo linearisation: a loop over `n * m` points that divides its iterator is two loops.

Reshapes (`einsum`, `reshape`, flattened batches) leave subscripts like `A[x // m, x % m]`, which hide
strides from everything that looks at them. With x = m * x1 + x0 they are `A[x1, x0]` again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gnnperf.nests.affine import Affine, affine, constant, from_affine, simplify
from gnnperf.nests.analysis import extent
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
)

Ranges = Mapping[str, tuple[int, int]]
"""Iterator -> inclusive range of its values, where constant."""


def delinearise(node: Node, ranges: Ranges | None = None) -> Node:
    """Split every independent loop whose iterator is divided by a divisor of its extent, and resolve
    the divisions that the ranges of the iterators decide."""
    ranges = dict(ranges or {})
    if not isinstance(node, Loop):
        return _resolve(node, ranges)
    size, start = extent(node), constant(node.start)
    if size and start == 0 and node.step == 1:
        for divisor in sorted(_divisors(node)):
            if 1 < divisor < size and size % divisor == 0 and node.independent:
                return delinearise(_split(node, divisor, size), ranges)
    if size and start is not None:
        ranges[node.iterator] = (start, start + (size - 1) * node.step)
    node = replace(node, start=_divided(node.start, ranges), stop=_divided(node.stop, ranges))
    return replace(node, body=tuple(delinearise(n, ranges) for n in node.body))


def _split(loop: Loop, divisor: int, size: int) -> Loop:
    outer, inner = f"{loop.iterator}_q", f"{loop.iterator}_m"
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
                    if divisor and affine(expr.args[0]).coefficient(loop.iterator) % divisor:
                        yield divisor


def _resolve(node: Node, ranges: Ranges) -> Node:
    return map_node(node, lambda e: _division(e, ranges))


def _divided(expr: Expr, ranges: Ranges) -> Expr:
    return map_expr(expr, lambda e: _division(e, ranges))


def _division(expr: Expr, ranges: Ranges) -> Expr:
    """`floordiv` and `mod` by a constant where the remainder's range is known."""
    if not isinstance(expr, Op) or expr.name not in ("floordiv", "mod"):
        return expr
    divisor = constant(expr.args[1])
    if not divisor or divisor < 0:
        return expr
    form = affine(simplify(expr.args[0]))
    whole = {a: c for a, c in form.terms.items() if c % divisor == 0}
    rest = Affine({a: c for a, c in form.terms.items() if a not in whole}, form.constant % divisor)
    bounds = _interval(rest, ranges)
    if bounds is None or bounds[0] < 0 or bounds[1] >= divisor:
        return expr
    if expr.name == "mod":
        return from_affine(rest)
    return from_affine(Affine({a: c // divisor for a, c in whole.items()}, form.constant // divisor))


def _interval(form: Affine, ranges: Ranges) -> tuple[int, int] | None:
    low = high = form.constant
    for atom, coefficient in form.terms.items():
        known = _atom_interval(atom, ranges)
        if known is None:
            return None
        ends = (coefficient * known[0], coefficient * known[1])
        low, high = low + min(ends), high + max(ends)
    return low, high


def _atom_interval(atom: Expr, ranges: Ranges) -> tuple[int, int] | None:
    if isinstance(atom, Symbol):
        return ranges.get(atom.name)
    if isinstance(atom, Op) and atom.name in ("floordiv", "mod"):
        divisor, inner = constant(atom.args[1]), _interval(affine(atom.args[0]), ranges)
        if not divisor or divisor < 0:
            return None
        if atom.name == "mod":
            return 0, divisor - 1
        return None if inner is None else (inner[0] // divisor, inner[1] // divisor)
    return None
