"""Which bands of loops are BLAS routines.

A band is one where its only statement adds up products of two arrays (times what stands still), and
where every array is walked the way the routine walks it: one dimension contiguous, the other at a
leading dimension. The order of the loops and the names of the arrays do not matter. Loops that walk
all arrays like one are taken as one; loops for which the routine has no place stay around the call.

    gemm  C[m, n] += alpha A[m, k] B[k, n], each of A and B as it is or transposed; A[m, k] w[k] A[n, k], too,
          which computes half of a symmetric result
    gemv  y[m] += alpha A[m, k] x[k], A as it is or transposed
    ger   A[m, n] += alpha x[m] y[n]
    dot   s += alpha x[k] y[k]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Literal

from gnnperf.nests.affine import affine, simplify
from gnnperf.nests.analysis import Band, bound_dependences, extent, is_data_dependent, mentions, stride
from gnnperf.nests.dtypes import INTEGER, REAL, value_dtype
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Op,
    Statement,
    Symbol,
    equals_number,
    loads,
    substitute,
)  # fmt: skip
from gnnperf.nests.ranges import longest

Routine = Literal["gemm", "gemv", "ger", "dot"]
Buffers = Mapping[str, Buffer]

DTYPES = ("float64", "float32", "complex128", "complex64")
MAX_INT = 2**31 - 1
"""Sizes and strides of the library are of type int."""


@dataclass(frozen=True)
class Term:
    """target += alpha * left * right, times `weight`, where there is one: it moves with sums alone."""

    target: Load
    left: Load
    right: Load
    alpha: Expr
    weight: Load | None = None

    @property
    def operands(self) -> tuple[Load, Load, Load]:
        return self.target, self.left, self.right

    def swapped(self) -> Term:
        return replace(self, left=self.right, right=self.left)


@dataclass(frozen=True)
class Axis:
    """A dimension of a routine: a loop, or several, outermost first, that walk the arrays like one.

    steps: elements by which target, left and right move per iteration. limit: most iterations.
    """

    loops: tuple[Loop, ...]
    steps: tuple[int, int, int]
    limit: int

    @property
    def length(self) -> Expr:
        total: Expr = Const(1)
        for loop in self.loops:
            total = Op("mul", (total, Op("sub", (loop.stop, loop.start))))
        return simplify(total)

    def swapped(self) -> Axis:
        target, left, right = self.steps
        return replace(self, steps=(target, right, left))


@dataclass(frozen=True)
class MatrixLayout:
    """A matrix in memory: by rows, or transposed; `leading`: elements from one row to the next."""

    transposed: bool
    leading: int


@dataclass(frozen=True)
class Call:
    """One call of a routine. Axes that the routine does not have are None; layouts are those of its
    matrices: A and B of gemm (its C is always by rows), A of gemv and of ger.

    batch: loops around the call with which the target moves, sequential ones first; repeats: reductions
    between them and the call.
    """

    routine: Routine
    term: Term
    m: Axis | None
    n: Axis | None
    k: Axis | None
    layouts: tuple[MatrixLayout, ...] = ()
    batch: tuple[Loop, ...] = ()
    repeats: tuple[Loop, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in (self.m, self.n, self.k) if axis is not None)

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops that the call replaces, reductions innermost."""
        return tuple(loop for axis in self.axes for loop in axis.loops)

    @property
    def work(self) -> int:
        """Most multiplications of one call."""
        return prod(axis.limit for axis in self.axes)

    @property
    def is_symmetric(self) -> bool:
        """Does it multiply a matrix with its own transpose? Both of the result's axes are one loop then."""
        m, n = self.m, self.n
        if self.routine != "gemm" or m is None or n is None or len(m.loops) != 1 or len(n.loops) != 1:
            return False
        (i,), (j,) = m.loops, n.loops
        left = tuple(substitute(e, {i.iterator: Symbol(j.iterator)}) for e in self.term.left.indices)
        same = self.term.left.buffer == self.term.right.buffer and left == self.term.right.indices
        return same and (i.start, i.stop) == (j.start, j.stop)

    def swapped(self) -> Call:
        """The same call with its operands, and with them m and n, in the other order."""
        m, n, k = (axis and axis.swapped() for axis in (self.n, self.m, self.k))
        return replace(self, term=self.term.swapped(), m=m, n=n, k=k)


def match(nest: Band, buffers: Buffers) -> tuple[Call, ...]:
    """The calls that do what the band does, one for each product that its statement adds up; () where
    some part of it is no BLAS routine."""
    if not nest.is_perfect or len(nest.body) != 1 or not _is_rectangular(nest.loops):
        return ()
    (statement,) = nest.statements
    names = set(nest.iterators)
    terms = [_term(statement, factors, names, buffers) for factors in products(statement.value)]
    calls = [_call(term, nest.loops, buffers) for term in terms if term is not None]
    if statement.reduce != "add" or statement.guard is not None or len(calls) != len(terms):
        return ()
    found = tuple(
        call for call in calls
        if call is not None and _weighs(call, statement, buffers) and _takes(call, buffers)
    )  # fmt: skip
    return found if len(found) == len(calls) else ()


def _weighs(call: Call, statement: Statement, buffers: Buffers) -> bool:
    """Is there a routine for the call's weight, if it has one? Those of symmetric results that start anew."""
    weight = call.term.weight
    if weight is None:
        return True
    starts = statement.init is not None and equals_number(statement.init, 0) and not call.repeats
    if not starts or not call.is_symmetric or call.k is None or len(call.k.loops) != 1:
        return False
    step = stride(weight, call.k.loops[0].iterator, buffers)
    return bool(step) and not any(
        mentions(weight, lp.iterator) for lp in call.loops if lp not in call.k.loops
    )


def _takes(call: Call, buffers: Buffers) -> bool:
    """Is there a routine for the call's numbers? Of complex ones no half of a symmetric result."""
    real = buffers[call.term.target.buffer].dtype.startswith("float")
    return real or (call.routine in ("gemm", "gemv") and not call.is_symmetric)


# --------------------------------------------------------------------------- the statement


def products(value: Expr, sign: int = 1) -> Iterator[list[Expr]]:
    """The products that a value sums up, each as its factors."""
    if isinstance(value, Op) and value.name in ("add", "sub"):
        left, right = value.args
        yield from products(left, sign)
        yield from products(right, sign if value.name == "add" else -sign)
    elif isinstance(value, Op) and value.name == "neg":
        yield from products(value.args[0], -sign)
    else:
        yield [Const(sign), *_factors(value)]


def _factors(value: Expr) -> Iterator[Expr]:
    if isinstance(value, Op) and value.name == "mul":
        for argument in value.args:
            yield from _factors(argument)
    elif isinstance(value, Op) and value.name == "neg":
        yield Const(-1)
        yield from _factors(value.args[0])
    else:
        yield value


def product_term(statement: Statement, iterators: set[str], buffers: Buffers) -> Term | None:
    """What a statement adds to its target, where that is one product; None where it is not."""
    found = [*products(statement.value)]
    return _term(statement, found[0], iterators, buffers) if len(found) == 1 else None


def _term(statement: Statement, factors: list[Expr], iterators: set[str], buffers: Buffers) -> Term | None:
    """Two arrays of the target's type, and factors that stand still while the loops run."""
    target = statement.target
    buffer = buffers[target.buffer]
    moving = [f for f in factors if any(mentions(f, name) for name in iterators)]
    still = [f for f in factors if f not in moving and not equals_number(f, 1)]
    dtypes = {value_dtype(f, buffers) for f in factors} - {INTEGER, REAL}
    if buffer.dtype not in DTYPES or dtypes != {buffer.dtype} or buffer.scope != "global":
        return None
    # What the routine reads must not be what it writes: it keeps no order between them.
    if any(ld.buffer == target.buffer for f in (*factors, *target.indices) for ld in loads(f)):
        return None
    results = {name for name in iterators if mentions(target, name)}
    weights = (
        [f for f in moving if not any(mentions(f, name) for name in results)] if len(moving) == 3 else []
    )
    moving = [f for f in moving if f not in weights]
    if len(weights) > 1 or any(not isinstance(f, Load) for f in weights):
        return None
    if len(moving) != 2 or any(buffers[ld.buffer].scope != "global" for f in moving for ld in loads(f)):
        return None
    left, right = moving
    if not isinstance(left, Load) or not isinstance(right, Load):
        return None
    alpha: Expr = Const(1)
    for factor in still:
        alpha = factor if equals_number(alpha, 1) else Op("mul", (alpha, factor))
    return Term(target, left, right, alpha, *(f for f in weights if isinstance(f, Load)))


# --------------------------------------------------------------------------- the loops


def _is_rectangular(loops: Sequence[Loop]) -> bool:
    """Unit steps, bounds that no loop of the band changes, sequential loops outermost only."""
    names = {lp.iterator for lp in loops}
    order = [lp.independent for lp in loops]
    return order == sorted(order) and all(
        lp.step == 1 and not is_data_dependent(lp) and not bound_dependences(lp) & names for lp in loops
    )


def _call(term: Term, loops: Sequence[Loop], buffers: Buffers) -> Call | None:
    """The largest routine that some of the loops make up, with the others around it."""
    groups: dict[tuple[bool, ...], list[Axis]] = {}  # by which of target, left and right move
    for loop in loops:
        steps = [stride(load, loop.iterator, buffers) for load in term.operands]
        known = [step for step in steps if step is not None]
        if len(known) < 3:
            return None
        limit = _limit(loop, term, buffers)
        if not loop.independent or limit is None or limit < 2 or any(step < 0 for step in known):
            continue  # around the call
        t, left, right = known
        groups.setdefault((t > 0, left > 0, right > 0), []).append(Axis((loop,), (t, left, right), limit))
    kinds = ((True, True, False), (True, False, True), (False, True, True))
    candidates: list[list[Axis | None]] = [[*_runs(groups.get(kind, []))] or [None] for kind in kinds]
    for m, n, k in sorted(product(*candidates), key=lambda c: -prod(a.limit for a in c if a)):
        call = _routine(term, m, n, k)
        if call is not None:
            return _surrounded(call, loops, buffers)
    return None


def _runs(axes: list[Axis]) -> list[Axis]:
    """Every axis, and every chain of them that the arrays walk like one."""
    ordered = sorted(axes, key=lambda axis: max(axis.steps), reverse=True)
    found = []
    for start, first in enumerate(ordered):
        found.append(first)
        for inner in ordered[start + 1 :]:
            if not _is_exact(inner) or first.steps != tuple(step * inner.limit for step in inner.steps):
                break
            first = Axis((*first.loops, *inner.loops), inner.steps, first.limit * inner.limit)
            found.append(first)
    return [axis for axis in found if axis.limit <= MAX_INT]


def _is_exact(axis: Axis) -> bool:
    return all(extent(loop) == axis.limit for loop in axis.loops)


def _limit(loop: Loop, term: Term, buffers: Buffers) -> int | None:
    """Most iterations of a loop: what its bounds say, else what fits into the arrays."""
    known = extent(loop)
    if known is None:
        known = longest(loop.start, loop.stop)
    if known is not None:
        return max(known, 0)
    sizes = [
        size
        for load in term.operands
        for index, size in zip(load.indices, buffers[load.buffer].shape, strict=True)
        if isinstance(size, int) and affine(index).coefficient(loop.iterator) in (1, -1)
    ]
    return max(sizes, default=None)


def _surrounded(call: Call, loops: Sequence[Loop], buffers: Buffers) -> Call | None:
    rest = [lp for lp in loops if lp not in call.loops]
    repeats = [lp for lp in rest if lp.independent and not stride(call.term.target, lp.iterator, buffers)]
    batch = [lp for lp in rest if lp not in repeats]
    if (call.routine == "dot" and any(lp.independent for lp in rest)) or (call.routine == "ger" and repeats):
        return None  # too little for a call
    return replace(call, batch=tuple(batch), repeats=tuple(repeats))


# --------------------------------------------------------------------------- the routines


def _routine(term: Term, m: Axis | None, n: Axis | None, k: Axis | None) -> Call | None:
    if m and n and k:
        return _gemm(Call("gemm", term, m, n, k))
    if k and (m or n):
        call = Call("gemv", term, m, n, k)
        return _gemv(call if m else call.swapped())
    if m and n:
        call = Call("ger", term, m, n, None)
        return _ger(call) or _ger(call.swapped())
    if k:
        return Call("dot", term, None, None, k)
    return None


def _gemm(call: Call) -> Call | None:
    for form in (call, call.swapped()):
        assert form.m and form.n and form.k
        result = _layout(form.m, form.n, 0)
        left, right = _layout(form.m, form.k, 1), _layout(form.k, form.n, 2)
        if result and not result.transposed and left and right:
            return replace(form, layouts=(left, right, result))
    return None


def _gemv(call: Call) -> Call | None:
    assert call.m and call.k
    matrix = _layout(call.m, call.k, 1)
    return replace(call, layouts=(matrix,)) if matrix else None


def _ger(call: Call) -> Call | None:
    assert call.m and call.n
    matrix = _layout(call.m, call.n, 0)
    return replace(call, layouts=(matrix,)) if matrix and not matrix.transposed else None


def _layout(rows: Axis, columns: Axis, operand: int) -> MatrixLayout | None:
    """How the library would call a matrix with these rows and columns."""
    down, across = rows.steps[operand], columns.steps[operand]
    if across == 1 and columns.limit <= down <= MAX_INT:
        return MatrixLayout(False, down)
    if down == 1 and rows.limit <= across <= MAX_INT:
        return MatrixLayout(True, across)
    return None
