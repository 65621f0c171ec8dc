"""Parts of arrays that DaCe 1.0's parser takes for others."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import sympy
from dace import symbolic
from dace.frontend.python import memlet_parser
from dace.subsets import Range

from gnnperf.frontends.dace.parser.numpy_functions import pointwise, subscripts

Method = Callable[..., Any]
"""Of DaCe's visitor of Python programs, without a type there."""

Ends = tuple[Any, Any, Any]
"""First, last and step of a range, as DaCe has them."""


def fitting(original: Method) -> Method:
    """Loops inside maps, with subscripts that move with both.

    Of `for i in dace.map[0:M]: for k in range(K): ... x[i + k]`, what is inside of the map has a part of x,
    in which subscripts begin anew: `x[k]`. Where DaCe does not find which part the loop goes through (its
    bound is a symbol, or the subscript falls, `x[i - k]`), part and subscripts do not fit.
    """

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


def reading(original: Method, keeps_axes: bool = True) -> Method:
    """`x[::2]`, which DaCe takes for the first half of x, and `x[::-1]`, which it refuses, are copies. Slices
    of one element keep their axes, unless they shall not: `x[:, :1]` is `x[:, 0, np.newaxis]`, not
    `x[:, 0]`."""

    @wraps(original)
    def add(visitor: Any, array: str, node: ast.Subscript, expression: Any) -> Any:
        ranges, held = expression.subset, visitor.sdfg.arrays[array]
        if not isinstance(ranges, Range) or expression.arrdims:
            return original(visitor, array, node, expression)
        if all(step == 1 for _, _, step in ranges):
            if not keeps_axes or all(size == 1 for size in ranges.size()):
                return original(visitor, array, node, expression)
            expression.new_axes, strides = _kept_axes(node.slice, ranges, held.strides)
            name = original(visitor, array, node, expression)
            visitor.sdfg.arrays[name].strides = strides
            return name
        slices = [axis for axis in axes_of(node.slice, len(ranges)) if not is_new(axis)]
        spans = [_span(*axis) for axis in zip(ranges, held.shape, slices, strict=True)]
        shape = [count for _, count, _ in spans if count != 1]
        at = iter(subscripts(len(shape)))
        source = [
            str(first) if count == 1 else f"{first} + {step} * {next(at)}" for first, count, step in spans
        ]
        state = visitor._add_state("every_second")
        name = pointwise(visitor.sdfg, state, shape, held.dtype, "__x", {"__x": (array, source)})
        visitor.variables[name] = name
        return _with_axes(visitor, node, name, [count for _, count, _ in spans])

    return add


def _kept_axes(written: ast.expr, ranges: Range, strides: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Where axes of one element are made: new ones, and those that slices leave, each before the axis of the
    array that it stands for. And the strides of all axes that stay."""
    made, steps, place = [], [], 0
    sizes = zip(ranges.size(), strides, strict=True)
    for axis in axes_of(written, len(ranges)):
        size, step = (1, 1) if is_new(axis) else next(sizes)
        if size != 1 or isinstance(axis, ast.Slice) or is_new(axis):
            steps.append(step)
            if size == 1:
                made.append(place)
                place += isinstance(axis, ast.Slice)
        place += 1
    return made, steps


def axes_of(written: ast.expr, count: int) -> list[ast.expr]:
    """What a subscript says of every axis of an array, and of new ones."""
    axes = written.elts if isinstance(written, ast.Tuple) else [written]
    at = next((i for i, axis in enumerate(axes) if _is_ellipsis(axis)), len(axes))
    named = [axis for axis in axes if not _is_ellipsis(axis)]
    whole: list[ast.expr] = [ast.Slice()] * (count - sum(not is_new(axis) for axis in named))
    return [*named[:at], *whole, *named[at:]]


def _with_axes(
    visitor: Any, node: ast.Subscript, part: str, sizes: Sequence[Any], with_steps: bool = False
) -> str:
    """What was read without the axes of one element that numbers, slices and `np.newaxis` make, with those of
    the latter two. sizes: of the array's axes. with_steps: it was read without steps, too."""
    left, axes = iter(sizes), list[ast.expr]()
    for axis in axes_of(node.slice, len(sizes)):
        size = 1 if is_new(axis) else next(left)
        if size != 1:
            axes.append(ast.Slice(step=axis.step if with_steps and isinstance(axis, ast.Slice) else None))
        elif isinstance(axis, ast.Slice) or is_new(axis):
            axes.append(ast.Constant(None))
    if all(isinstance(axis, ast.Slice) and axis.step is None for axis in axes):
        return part
    return _taken(visitor, node, part, axes)


def is_outside(visitor: Any, name: str) -> bool:
    """Is it an array of what is around a map that is being read?"""
    inside = name in visitor.sdfg.arrays or name in visitor.variables
    return not inside and visitor.scope_vars.get(name) in visitor.scope_arrays


def reading_in_maps(original: Method) -> Method:
    """The same of `x[i, ::2]` and `x[i, :, :1]` in a map. DaCe hands what is read of x inside, without axes
    of one element; in its place all from the first to the last goes inside, and is read there."""

    @wraps(original)
    def add(visitor: Any, name: str, ranges: Range, target: Any, *rest: Any, **more: Any) -> Any:
        if not isinstance(target, ast.Subscript) or not is_outside(visitor, name):
            return original(visitor, name, ranges, target, *rest, **more)
        shape = visitor.scope_arrays[visitor.scope_vars[name]].shape
        slices = [axis for axis in axes_of(target.slice, len(ranges)) if not is_new(axis)]
        whole = _without_steps(ranges, shape, slices)
        sizes = whole.size()
        several = [axis for axis, size in zip(slices, sizes, strict=True) if size != 1]
        if not several or not all(isinstance(axis, ast.Slice) for axis in several):
            return original(visitor, name, ranges, target, *rest, **more)
        part, inside = original(visitor, name, whole, target, *rest, **more)
        found = _with_axes(visitor, target, part, sizes, with_steps=True)
        return found, inside if found == part else Range.from_array(visitor.sdfg.arrays[found])

    return add


def _taken(visitor: Any, node: ast.AST, array: str, axes: list[ast.expr]) -> str:
    """A part of an array that is known inside."""
    part = ast.Subscript(ast.Name(array, ast.Load()), ast.Tuple(axes, ast.Load()), ast.Load())
    visitor.variables[array] = array
    return str(visitor.visit(ast.fix_missing_locations(ast.copy_location(part, node))))


def is_new(axis: ast.expr) -> bool:
    return isinstance(axis, ast.Constant) and axis.value is None


def _without_steps(ranges: Range, shape: Sequence[Any], written: Sequence[ast.expr]) -> Range:
    """From the lowest elements to the highest that slices take."""
    within = [_within(*axis) for axis in zip(ranges, shape, written, strict=True)]
    return Range([(low, high, 1) for low, high, _ in within])


def _within(ends: Ends, size: Any, written: ast.expr) -> Ends:
    """The ends between which a slice takes elements, the lower one first, and the step."""
    first, last, step = ends
    if isinstance(written, ast.Slice) and (step < 0) == True:  # noqa: E712  # of sympy
        # DaCe has the ends of a slice that goes up
        stop = -1 if written.upper is None else (last + 1) % size if last == size - 1 else last + 1
        return stop + 1, (size - 1 if written.lower is None else first), step
    return ends


def _span(ends: Ends, size: Any, written: ast.expr) -> tuple[Any, Any, Any]:
    """Where a slice begins, how many elements it has, and the step."""
    low, high, step = _within(ends, size, written)
    if step == 1 or not isinstance(written, ast.Slice):
        return low, high - low + 1, step
    if (step < 0) == True:  # noqa: E712  # of sympy
        return high, sympy.ceiling((high - low + 1) / sympy.Integer(-step)), step
    return low, Range([ends]).size()[0], step


def from_the_end(original: Method) -> Method:
    """`x[:-K]` leaves out the last K where K is a symbol, too."""

    @wraps(original)
    def fill(defined: Any, axes: Sequence[Any], array: Any, indices: Sequence[int]) -> Any:
        if not any(isinstance(axis, tuple) for axis in axes) or any(_is_ellipsis(axis) for axis in axes):
            return original(defined, axes, array, indices)
        places = itertools.accumulate((axis is not None for axis in axes), initial=0)
        found = [
            tuple(_forwards(defined, end, array.shape[indices[at]]) for end in axis)
            if isinstance(axis, tuple)
            else axis
            for axis, at in zip(axes, places, strict=False)
        ]
        return original(defined, found, array, indices)

    return fill


def _is_ellipsis(axis: Any) -> bool:
    return (
        axis is Ellipsis or getattr(axis, "value", None) is Ellipsis or getattr(axis, "id", None) is Ellipsis
    )


def _forwards(defined: Any, end: Any, size: Any) -> Any:
    """An end of a slice, counted from the beginning."""
    value = getattr(end, "value", end)
    is_symbol = isinstance(value, sympy.Basic) and not value.is_number and value.as_coeff_Mul()[0].is_negative
    match end:
        case ast.UnaryOp(op=ast.USub(), operand=number) if not isinstance(number, ast.Constant):
            is_symbol = True
    return memlet_parser._parse_dim_atom(defined, end) + size if is_symbol else end
