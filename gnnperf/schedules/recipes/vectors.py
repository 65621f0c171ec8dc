"""What may run as explicit vectors, and how wide they are."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.devices import VectorUnit
from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.analysis import Band, stride, varies
from gnnperf.nests.ir import LAZY, Buffer, Const, Expr, Load, Loop, Op, Statement, children, loads
from gnnperf.nests.ranges import value_range

ELEMENTWISE = frozenset("add sub mul div neg min max sqrt exp log abs tanh sin cos select pow".split())
OF_INTEGERS = frozenset("add sub mul neg min max abs select bitand bitor bitxor shl shr".split())
COMPARISONS = frozenset("lt le gt ge eq ne".split())
_VECTORS_OF: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("float64", "float32"), ELEMENTWISE),
    **dict.fromkeys(("int64", "int32", "uint64", "uint32"), OF_INTEGERS),
}
"""Operations on whole vectors, by their type."""


def lanes(statement: Statement, buffers: Mapping[str, Buffer], vectors: VectorUnit) -> int:
    """Elements of its target in one vector register."""
    return vectors.bytes // ELEMENT_BYTES[buffers[statement.target.buffer].dtype]


def is_vectorized(loop: Loop) -> bool:
    """Does it run as explicit vectors?"""
    return loop.annotation is not None and loop.annotation.kind == "vectorized"


def vectorizable(statement: Statement, iterator: str, buffers: Mapping[str, Buffer]) -> bool:
    """One dtype of four or eight bytes throughout, elementwise operations, no guard, no iterator as a value,
    and a store that is contiguous along the iterator (or a reduction across it)."""
    dtype = buffers[statement.target.buffer].dtype
    if dtype not in _VECTORS_OF or statement.guard is not None:
        return False
    if varies(statement.target, iterator) and stride(statement.target, iterator, buffers) != 1:
        return False
    if not varies(statement.target, iterator) and statement.target.indices and statement.reduce is None:
        return False
    if any(map(loads, statement.target.indices)):
        return False
    return _elementwise(statement.value, dtype, buffers)


def _elementwise(expr: Expr, dtype: str, buffers: Mapping[str, Buffer]) -> bool:
    """Comparisons give masks, which only choose: `select(a < b, x, y)`."""
    if isinstance(expr, Load):  # its subscripts are addresses, not vector values
        return buffers[expr.buffer].dtype == dtype
    if isinstance(expr, Op):
        if expr.name not in _VECTORS_OF[dtype]:
            return False
        args = expr.args
        if expr.name == "select":
            condition, args = args[0], args[1:]
            if not isinstance(condition, Op) or condition.name not in COMPARISONS:
                return False
            of = compared(condition, dtype, buffers)
            if ELEMENT_BYTES[of] != ELEMENT_BYTES[dtype] or of not in _VECTORS_OF:
                return False
            if not all(_elementwise(a, of, buffers) for a in condition.args):
                return False
        return all(_elementwise(a, dtype, buffers) for a in args)
    return isinstance(expr, Const) and (isinstance(expr.value, int) or dtype.startswith("float"))


def compared(condition: Expr, dtype: str, buffers: Mapping[str, Buffer]) -> str:
    """Type of what is compared; `dtype` where there are literals alone."""
    return next((buffers[ld.buffer].dtype for ld in loads(condition)), dtype)


def guarded_loads(band: Band, buffers: Mapping[str, Buffer]) -> set[Load]:
    """Loads that happen only where a condition holds (`select`, `and`, `or`) and that may be out of
    bounds elsewhere: they must not be executed ahead of the condition."""
    always: set[Load] = set()
    sometimes: set[Load] = set()
    for statement in band.statements:
        certain, uncertain = loads_by_certainty(statement.value)
        always |= certain
        sometimes |= uncertain
    loops = {lp.iterator: [lp] for lp in band.loops}
    places = {(load.indices, buffers[load.buffer].shape) for load in always}
    unsure = (ld for ld in sometimes if (ld.indices, buffers[ld.buffer].shape) not in places)
    return {load for load in unsure if not in_bounds(load, loops, buffers)}


def in_bounds(load: Load, loops: Mapping[str, list[Loop]], buffers: Mapping[str, Buffer]) -> bool:
    """Is the element known to exist, wherever the loops (by iterator) are?"""
    for index, size in zip(load.indices, buffers[load.buffer].shape, strict=True):
        low, high = value_range(index, loops)
        if low < 0 or not isinstance(size, int) or high >= size:
            return False
    return True


def loads_by_certainty(expr: Expr) -> tuple[set[Load], set[Load]]:
    """(loads that always happen, loads that may not)."""
    always: set[Load] = {expr} if isinstance(expr, Load) else set()
    sometimes: set[Load] = set()
    lazy = isinstance(expr, Op) and expr.name in LAZY
    for number, child in enumerate(children(expr)):
        certain, uncertain = loads_by_certainty(child)
        if lazy and number > 0:
            sometimes |= certain | uncertain
        else:
            always |= certain
            sometimes |= uncertain
    return always, sometimes
