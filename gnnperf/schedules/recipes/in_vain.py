"""What may be computed whether it is needed or not, in place of a branch around it."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.nests.dtypes import TRUTHS
from gnnperf.nests.ir import Buffer, Expr, Load, Op, Symbol, children, loads

MOST_OPERATIONS = 4
"""Operations that are cheaper done in vain than branched around."""

_MAY_TRAP = frozenset(("div", "mod", "floordiv"))


def is_harmless(expr: Expr, condition: Expr) -> bool:
    """May the expression be computed where the condition does not hold? It must be cheap, and what it reads
    must be there: elements at places that depend on no data, under a condition that depends on data alone."""
    operations = [e for e in _values(expr) if isinstance(e, Op)]
    if len(operations) > MOST_OPERATIONS or any(e.name in _MAY_TRAP for e in operations):
        return False
    if any(loads(index) for load in loads(expr) for index in load.indices):
        return False
    return not loads(expr) or not any(isinstance(e, Symbol) for e in _values(condition))


def is_truth(expr: Expr, buffers: Mapping[str, Buffer]) -> bool:
    """Is its value true or false, and not a number that counts as one of them?"""
    if isinstance(expr, Load):
        return buffers[expr.buffer].dtype == "bool"
    return isinstance(expr, Op) and expr.name in TRUTHS


def _values(expr: Expr) -> list[Expr]:
    """The expression and what it is computed from; what subscripts are is left out."""
    below = [] if isinstance(expr, Load) else [e for child in children(expr) for e in _values(child)]
    return [expr, *below]
