"""What may run as explicit vectors, and how wide they are."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.devices import VectorUnit
from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.analysis import Band, stride, varies
from gnnperf.nests.ir import LAZY, Buffer, Const, Expr, Load, Loop, Op, Statement, children, loads
from gnnperf.nests.ranges import value_range

ELEMENTWISE = frozenset("add sub mul div neg min max sqrt exp log abs tanh sin cos select pow".split())
COMPARISONS = frozenset("lt le gt ge eq ne".split())


def lanes(statement: Statement, buffers: Mapping[str, Buffer], vectors: VectorUnit) -> int:
    """Elements of its target in one vector register."""
    return vectors.bytes // ELEMENT_BYTES[buffers[statement.target.buffer].dtype]


def vectorizable(statement: Statement, iterator: str, buffers: Mapping[str, Buffer]) -> bool:
    """One floating-point dtype throughout, elementwise operations, no guard, no iterator as a value,
    and a store that is contiguous along the iterator (or a reduction across it)."""
    dtype = buffers[statement.target.buffer].dtype
    if dtype not in ("float64", "float32") or statement.guard is not None:
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
        if expr.name not in ELEMENTWISE:
            return False
        args = expr.args
        if expr.name == "select":
            condition, *values = args
            if not isinstance(condition, Op) or condition.name not in COMPARISONS:
                return False
            args = (*condition.args, *values)
        return all(_elementwise(a, dtype, buffers) for a in args)
    return isinstance(expr, Const)


def guarded_loads(band: Band, buffers: Mapping[str, Buffer]) -> set[Load]:
    """Loads that happen only where a condition holds (`select`, `and`, `or`) and that may be out of
    bounds elsewhere: they must not be executed ahead of the condition."""
    always: set[Load] = set()
    sometimes: set[Load] = set()
    for statement in band.statements:
        certain, uncertain = _loads_by_certainty(statement.value)
        always |= certain
        sometimes |= uncertain
    loops = {lp.iterator: [lp] for lp in band.loops}
    return {load for load in sometimes - always if not _in_bounds(load, loops, buffers)}


def _in_bounds(load: Load, loops: Mapping[str, list[Loop]], buffers: Mapping[str, Buffer]) -> bool:
    for index, size in zip(load.indices, buffers[load.buffer].shape, strict=True):
        low, high = value_range(index, loops)
        if low < 0 or not isinstance(size, int) or high >= size:
            return False
    return True


def _loads_by_certainty(expr: Expr) -> tuple[set[Load], set[Load]]:
    """(loads that always happen, loads that may not)."""
    always: set[Load] = {expr} if isinstance(expr, Load) else set()
    sometimes: set[Load] = set()
    lazy = isinstance(expr, Op) and expr.name in LAZY
    for number, child in enumerate(children(expr)):
        certain, uncertain = _loads_by_certainty(child)
        if lazy and number > 0:
            sometimes |= certain | uncertain
        else:
            always |= certain
            sometimes |= uncertain
    return always, sometimes
