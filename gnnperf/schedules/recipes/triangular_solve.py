"""Which nests solve a triangular system with many right-hand sides: a routine of BLAS, trsm.

for j, for i:                           for j, for i:
    for k in 0..i:                          X[i, j] /= L[i, i]
        X[i, j] -= L[i, k] * X[k, j]        for k in i + 1..n:
    X[i, j] /= L[i, i]                          X[k, j] -= L[k, i] * X[i, j]

Rows may also be taken from the last to the first (upper triangles), matrices be stored transposed, the
diagonal be one, and the sum be kept apart: `x[i] = (b[i] - sum of L[i, k] * x[k]) / L[i, i]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.analysis import access_counts, mentions, stride
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
    equals_number,
    loads,
    map_expr,
    substitute,
)
from gnnperf.schedules.recipes.blas import MAX_INT, products

Buffers = Mapping[str, Buffer]


@dataclass(frozen=True)
class Solve:
    """A[n, n] X[n, m] = B[n, m], in place.

    before: nests that put B where X comes. node: loops that do the same. upper, transposed: of A in memory,
    by rows; right: X lies transposed in memory. a, x: the first elements; steps in elements between rows.
    """

    before: tuple[Node, ...]
    node: Loop
    upper: bool
    transposed: bool
    unit: bool
    right: bool
    rows: Expr
    columns: Expr
    a: Load
    a_step: int
    x: Load
    x_step: int


@dataclass(frozen=True)
class _Parts:
    """What a nest of the right form is made of. solved: X in the row of the outer loop, other: in the row of
    the inner one. value: what `solved` is before anything is subtracted; None: what it holds."""

    columns: Loop | None
    outer: Loop
    inner: Loop
    matrix: Load
    solved: Load
    other: Load
    diagonal: Load | None
    updates_solved: bool
    value: Expr | None


def match_solve(node: Node, buffers: Buffers, around: Mapping[str, int] | None = None) -> Solve | None:
    """The system that a nest solves; None where it does anything else. around: how often what the nest is in
    accesses each buffer, where sums that are kept apart may go."""
    parts = _parts(node, around)
    if parts is None:
        return None
    matrix, solved = buffers[parts.matrix.buffer], buffers[parts.solved.buffer]
    if matrix.dtype != solved.dtype or solved.dtype not in ("float64", "float32"):
        return None
    if matrix.scope != "global" or solved.scope != "global":
        return None
    return _solve(parts, buffers)


def _parts(node: Node, around: Mapping[str, int] | None) -> _Parts | None:
    columns = None
    if isinstance(node, Loop) and node.independent and len(node.body) == 1:
        columns, node = node, node.body[0]
    if not isinstance(node, Loop) or node.independent or node.condition is not None:
        return None
    children = node.body
    inner = [n for n in children if isinstance(n, Loop)]
    if len(inner) != 1 or any(lp.step != 1 for lp in (node, inner[0], columns) if lp is not None):
        return None
    bounds = [e for lp in (node, inner[0]) for e in (lp.start, lp.stop)]
    if columns is not None and any(mentions(e, columns.iterator) for e in bounds):
        return None
    update = _update(inner[0])
    if update is None:
        return None
    target, sign, begins, factors = update
    at = children.index(inner[0])
    before, after = children[:at], children[at + 1 :]
    if not all(isinstance(n, Statement) and n.guard is None for n in (*before, *after)):
        return None
    apart = None if around is None else (around, access_counts((node,)))
    if begins:
        found = _apart(target, sign, before, after, apart) if not before else None
    else:
        found = _in_place(target, sign, before, after)
        found = found or (_apart(target, sign, before, after, apart) if before else None)
    if found is None:
        return None
    updated, divided, diagonal, value = found
    others = [f for f in factors if f.buffer == updated.buffer]
    matrices = [f for f in factors if f.buffer != updated.buffer]
    if len(others) != 1 or len(matrices) != 1:
        return None
    updates_solved = not any(mentions(index, inner[0].iterator) for index in updated.indices)
    solved, other = (updated, others[0]) if updates_solved else (others[0], updated)
    if divided is not None and (divided != solved or bool(after) != updates_solved):
        return None
    return _Parts(columns, node, inner[0], matrices[0], solved, other, diagonal, updates_solved, value)


def _update(inner: Loop) -> tuple[Load, int, bool, list[Load]] | None:
    """(target, sign, whether it begins at zero, two factors) of a loop that adds up products."""
    *temporaries, last = inner.body
    values: dict[Load, Expr] = {}
    for node in temporaries:
        if not isinstance(node, Statement) or node.reduce or node.guard or node.target.indices:
            return None
        values[node.target] = node.value
    if not isinstance(last, Statement) or last.reduce != "add" or last.guard is not None:
        return None
    if last.init is not None and not equals_number(last.init, 0):
        return None
    value = map_expr(last.value, lambda e: values.get(e, e) if isinstance(e, Load) else e)
    (factors, *more) = products(value)
    numbers = [f.value for f in factors if isinstance(f, Const)]
    arrays = [f for f in factors if isinstance(f, Load)]
    if more or len(arrays) != 2 or len(numbers) + 2 != len(factors) or any(n not in (1, -1) for n in numbers):
        return None
    sign = -1 if sum(n == -1 for n in numbers) % 2 else 1
    return last.target, sign, last.init is not None, arrays


_Found: TypeAlias = tuple[Load, Load | None, Load | None, Expr | None]
"""What is updated, what is divided, by which element, and what was there before."""


def _in_place(target: Load, sign: int, before: Sequence[Node], after: Sequence[Node]) -> _Found | None:
    """Products are subtracted from X itself."""
    if sign > 0 or len(before) + len(after) > 1:
        return None
    for statement in (*before, *after):
        if not isinstance(statement, Statement) or statement.reduce is not None:
            return None
        value = statement.value
        if not isinstance(value, Op) or value.name != "div" or value.args[0] != statement.target:
            return None
        diagonal = value.args[1]
        return (target, statement.target, diagonal, None) if isinstance(diagonal, Load) else None
    return target, None, None, None


def _apart(
    target: Load,
    sign: int,
    before: Sequence[Node],
    after: Sequence[Node],
    counts: tuple[Mapping[str, int], Mapping[str, int]] | None,
) -> _Found | None:
    """Products are added up elsewhere, from zero, where nothing else looks."""
    if sign < 0 or len(after) != 1 or len(before) > 1 or counts is None:
        return None
    whole, inside = counts
    if whole.get(target.buffer) != inside.get(target.buffer):
        return None
    for start in before:
        if not isinstance(start, Statement) or start.target != target or not equals_number(start.value, 0):
            return None
    (final,) = after
    if not isinstance(final, Statement) or final.reduce is not None:
        return None
    value, diagonal = final.value, None
    if isinstance(value, Op) and value.name == "div":
        value, by = value.args
        if not isinstance(by, Load):
            return None
        diagonal = by
    if not isinstance(value, Op) or value.name != "sub" or value.args[1] != target:
        return None
    kept = value.args[0]
    if kept == final.target:
        return final.target, final.target, diagonal, None
    if any(ld.buffer in (target.buffer, final.target.buffer) for ld in loads(kept)):
        return None
    return final.target, final.target, diagonal, kept


def _solve(parts: _Parts, buffers: Buffers) -> Solve | None:
    outer, inner, solved, other = parts.outer, parts.inner, parts.solved, parts.other
    dimension = _only_dimension(solved, outer.iterator)
    if dimension is None or _only_dimension(other, inner.iterator) != dimension:
        return None
    if any(
        d != dimension and a != b for d, (a, b) in enumerate(zip(solved.indices, other.indices, strict=True))
    ):
        return None
    row, below = affine(solved.indices[dimension]), affine(other.indices[dimension])
    direction = row.coefficient(outer.iterator)
    if direction not in (1, -1) or len(row.terms) > 1 or below.terms != {Symbol(inner.iterator): 1}:
        return None
    # Rows as numbers: of the outer loop's iteration, of its first and last, and of the inner loop's ends.
    here = solved.indices[dimension]
    first, last = (substitute(here, {outer.iterator: i}) for i in (outer.start, _minus(outer.stop, 1)))
    begin, end = (_minus(i, -below.constant) for i in (inner.start, inner.stop))
    wanted = {
        (True, 1): (first, here),
        (True, -1): (_minus(here, -1), _minus(first, -1)),
        (False, 1): (_minus(here, -1), _minus(last, -1)),
        (False, -1): (last, here),
    }[parts.updates_solved, direction]
    if (simplify(begin), simplify(end)) != tuple(map(simplify, wanted)):
        return None
    return _in_memory(parts, dimension, first if direction > 0 else last, direction < 0, buffers)


def _in_memory(parts: _Parts, dimension: int, least: Expr, upper: bool, buffers: Buffers) -> Solve | None:
    outer, inner, columns, matrix = parts.outer, parts.inner, parts.columns, parts.matrix
    i, k = (_only_dimension(matrix, name) for name in (outer.iterator, inner.iterator))
    here, other = parts.solved.indices[dimension], parts.other.indices[dimension]
    if i is None or k is None or i == k or constant(_difference(matrix.indices[i], here)) is None:
        return None
    if constant(_difference(matrix.indices[k], other)) is None:
        return None
    names = {outer.iterator, inner.iterator, *([columns.iterator] if columns else [])}
    if any(mentions(e, n) for d, e in enumerate(matrix.indices) if d not in (i, k) for n in names):
        return None
    # The diagonal: where the column, or row, of the inner loop is that of the outer one.
    on = list(matrix.indices)
    on[k] = simplify(Op("add", (here, _difference(matrix.indices[k], other))))
    if parts.diagonal is not None and tuple(map(simplify, parts.diagonal.indices)) != tuple(
        map(simplify, on)
    ):
        return None
    if parts.diagonal is not None and parts.diagonal.buffer != matrix.buffer:
        return None
    down, across = (i, k) if parts.updates_solved else (k, i)
    steps = buffers[matrix.buffer].strides
    transposed = steps[across] != 1
    a_step = steps[across if transposed else down]
    if 1 not in (steps[down], steps[across]) or not isinstance(a_step, int) or not 1 <= a_step <= MAX_INT:
        return None
    x_down = stride(parts.solved, outer.iterator, buffers)
    x_across = stride(parts.solved, columns.iterator, buffers) if columns else 1
    if not x_down or not x_across or x_across < 0:
        return None
    right = x_across != 1
    x_step = x_across if right else abs(x_down)
    count = simplify(Op("sub", (outer.stop, outer.start)))
    wide = simplify(Op("sub", (columns.stop, columns.start))) if columns else Const(1)
    length = constant(count if right else wide)
    if (right and abs(x_down) != 1) or length is None or not length <= x_step <= MAX_INT:
        return None
    start = list(on)
    start[i] = simplify(Op("add", (least, _difference(matrix.indices[i], here))))
    start[k] = simplify(Op("add", (least, _difference(matrix.indices[k], other))))
    x = [*parts.solved.indices]
    x[dimension] = least
    if columns is not None:
        x = [simplify(substitute(e, {columns.iterator: columns.start})) for e in x]
    node, before = _canonical(parts)
    return Solve(
        before, node, upper != transposed, transposed, parts.diagonal is None, right, count, wide,
        Load(matrix.buffer, tuple(start)), a_step, Load(parts.solved.buffer, tuple(x)), x_step,
    )  # fmt: skip


def _canonical(parts: _Parts) -> tuple[Loop, tuple[Node, ...]]:
    """The loops in place, and those that put the right-hand sides there."""
    product = Op("neg", (Op("mul", (parts.matrix, parts.other if parts.updates_solved else parts.solved)),))
    target = parts.solved if parts.updates_solved else parts.other
    inner = replace(parts.inner, body=(Statement(target, product, "add"),))
    body: tuple[Node, ...] = (inner,)
    if parts.diagonal is not None:
        quotient = Statement(parts.solved, Op("div", (parts.solved, parts.diagonal)))
        body = (inner, quotient) if parts.updates_solved else (quotient, inner)
    loops = [lp for lp in (parts.columns, parts.outer) if lp is not None]

    def within(nodes: tuple[Node, ...], rows: bool = False) -> Loop:
        for lp in reversed(loops):
            nodes = (replace(lp, body=nodes, independent=lp.independent or rows),)
        (found,) = nodes
        assert isinstance(found, Loop)
        return found

    before = () if parts.value is None else (within((Statement(parts.solved, parts.value),), rows=True),)
    return within(body), before


def _only_dimension(load: Load, name: str) -> int | None:
    found = [d for d, index in enumerate(load.indices) if mentions(index, name)]
    return found[0] if len(found) == 1 else None


def _difference(a: Expr, b: Expr) -> Expr:
    return simplify(Op("sub", (a, b)))


def _minus(a: Expr, b: int) -> Expr:
    return simplify(Op("sub", (a, Const(b))))
