"""What DaCe 1.0's parser misreads, read as Python means it.

Loops inside maps: of `for i in dace.map[0:M]: for k in range(K): ... x[i + k]`, what is inside of the map has
a part of x, in which subscripts begin anew: `x[k]`. Where DaCe does not find which part the loop goes through
(its bound is a symbol, or the subscript falls, `x[i - k]`), part and subscripts do not fit.

Numbers under two names: after `before = now`, where now is a scalar that was computed, both are one variable,
and `now += 1` changes both.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

import sympy
from dace import data, symbolic
from dace.frontend.python.newast import ProgramVisitor
from dace.subsets import Range

Ends = tuple[Any, Any, Any]
"""First, last and step of a range, as DaCe has them."""


@contextmanager
def repaired_parser() -> Iterator[None]:
    """DaCe's parser without these mistakes."""
    repairs = {"_add_access": _fitting, "visit_Assign": _copying}
    originals = {method: getattr(ProgramVisitor, method) for method in repairs}
    for method, repair in repairs.items():
        setattr(ProgramVisitor, method, repair(originals[method]))
    try:
        yield
    finally:
        for method, original in originals.items():
            setattr(ProgramVisitor, method, original)


def _copying(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def assign(visitor: Any, node: ast.Assign) -> Any:
        match node:
            case ast.Assign(targets=[ast.Name(id=new)], value=ast.Name(id=old) as value):
                held = visitor.sdfg.arrays.get(visitor.variables.get(old, old))
                if isinstance(held, data.Scalar) and not visitor.defined.get(new):
                    copied = ast.copy_location(ast.UnaryOp(ast.UAdd(), value), value)
                    node = ast.copy_location(ast.Assign(node.targets, copied), node)
        return original(visitor, node)

    return assign


def _fitting(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def add(visitor: Any, name: str, subscripts: Range, access: str, *rest: Any, **more: Any) -> Any:
        loops, inner = visitor.symbols, {*visitor.sdfg.arrays, *map(str, visitor.symbols)}
        moving = [d for d, ends in enumerate(subscripts) if any(_moves(ends, counter) for counter in loops)]
        parts = {d: _part(subscripts[d], loops, inner) for d in moving}
        is_known = None not in parts.values()
        if not is_known:  # what DaCe does not look into is a whole dimension, and subscripts stay
            visitor.symbols = {counter: _Anywhere(counter, span) for counter, span in loops.items()}
        try:
            found = original(visitor, name, subscripts, access, *rest, **more)
        finally:
            visitor.symbols = loops
        _, memlet, _ = (visitor.inputs if access == "r" else visitor.outputs)[found[0]]
        if moving and memlet.subset == subscripts:
            whole = Range.from_array(visitor.scope_arrays[memlet.data])
            chosen = parts if is_known else {d: whole[d] for d in moving}
            memlet.subset = Range([chosen.get(d, ends) for d, ends in enumerate(subscripts)])
        return found

    return add


class _Anywhere(Range):  # type: ignore[misc]  # dace has no types
    """The range of a counter, as one that depends on counters."""

    def __init__(self, counter: Any, span: Range) -> None:
        super().__init__(span.ranges)
        self.counter = counter

    @property
    def free_symbols(self) -> set[str]:
        return {str(self.counter)}


def _moves(ends: Ends, counter: Any) -> bool:
    return counter in symbolic.symlist(ends).values()


def _part(ends: Ends, loops: Mapping[Any, Range], inner: set[str]) -> Ends | None:
    """From the smallest subscripts to the largest; None where that is not known outside, or where the first
    iterations are not those at the smallest subscripts."""
    first, last, step = ends
    if symbolic.issymbolic(step):
        return None
    for counter, span in loops.items():
        if not _moves(ends, counter):
            continue
        low, high, stride = span[0]
        if stride not in (1, -1) or inner & set(symbolic.symlist(span[0])):
            return None
        if stride == -1:
            low, high = high, low
        if not all(_rises(end, counter) for end in (first, last)):
            return None
        first, last = first.subs(counter, low), last.subs(counter, high)
    return first, last, step


def _rises(subscript: Any, counter: Any) -> bool:
    slope = sympy.diff(subscript, counter)
    return counter not in slope.free_symbols and slope.is_nonnegative is True
