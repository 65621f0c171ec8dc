"""Stores to parts of arrays, which DaCe 1.0's parser refuses or takes for others."""

from __future__ import annotations

import ast
from functools import wraps
from typing import Any

from dace.subsets import Range

from gnnperf.frontends.dace.parser.numpy_functions import pointwise, subscripts
from gnnperf.frontends.dace.parser.slices import Method, axes_of, is_new, is_outside
from gnnperf.frontends.dace.parser.trees import computed_ahead


def writing_in_maps(original: Method) -> Method:
    """`y[i, ::2] = x[i]` in a map: DaCe hands as many elements of y inside as are written, one after another;
    here all from the first to the last."""

    @wraps(original)
    def add(visitor: Any, name: str, ranges: Range, target: Any, *rest: Any, **more: Any) -> Any:
        if not isinstance(target, ast.Subscript) or not is_outside(visitor, name):
            return original(visitor, name, ranges, target, *rest, **more)
        whole = Range([(first, last, 1) for first, last, _ in ranges])
        part, inside = original(visitor, name, whole, target, *rest, **more)
        left, axes = iter(ranges.size()), axes_of(target.slice, len(ranges))
        sizes = [(axis, 1 if is_new(axis) else next(left)) for axis in axes]
        written = [size for axis, size in sizes if isinstance(axis, ast.Slice) or is_new(axis)]
        vars(visitor).setdefault(_WRITTEN, {})[part] = written
        if whole == ranges:
            return part, inside
        ends = zip(inside, sorted(visitor.outputs[part][2]), strict=True)
        return part, Range([(first, last, ranges[axis][2]) for (first, last, _), axis in ends])

    return add


_WRITTEN = "sizes_written"
"""Of a visitor: by parts of arrays from around a map, the sizes of the axes that are written, with those of
one element, which the part lacks."""


def storing(original: Method) -> Method:
    """In maps, `y[i, :1] = x[i, :1]` stores without the axes that DaCe leaves out."""

    @wraps(original)
    def add(visitor: Any, node: Any, target: Any, operand: Any, *rest: Any, **more: Any) -> None:
        original(visitor, node, target, _as_written(visitor, target, operand), *rest, **more)

    return add


def _as_written(visitor: Any, target: Any, operand: Any) -> Any:
    """What is stored, without axes of one element that the part of an array that it is stored in lacks."""
    sizes = vars(visitor).get(_WRITTEN, {}).get(target[0] if isinstance(target, tuple) else target)
    if sizes is None or not isinstance(operand, str) or operand not in visitor.sdfg.arrays:
        return operand
    own = visitor.sdfg.arrays[operand].shape
    beside = [*[1] * (len(own) - len(sizes)), *sizes[max(0, len(sizes) - len(own)) :]]
    left_out = [size == there == 1 for size, there in zip(own, beside, strict=True)]
    shape = [size for size, out in zip(own, left_out, strict=True) if not out]
    if not shape or len(shape) == len(own):
        return operand
    at = iter(subscripts(len(shape)))
    source = {"__x": (operand, ["0" if out else next(at) for out in left_out])}
    state = visitor._add_state("as_written")
    return pointwise(visitor.sdfg, state, shape, visitor.sdfg.arrays[operand].dtype, "__x", source)


def broadcasting(original: Method) -> Method:
    """`x -= mean` changes all of x, which has more axes, or longer ones. DaCe changes one row, or refuses."""

    @wraps(original)
    def add(visitor: Any, node: Any, read: Any, written: Any, operand: Any, op: str, *masks: Any) -> None:
        arrays, operand = visitor.sdfg.arrays, _as_written(visitor, written, operand)
        target, part = written if isinstance(written, tuple) else (written, None)
        shape = list(arrays[target].shape if part is None else part.size())
        if isinstance(operand, str) and operand in arrays and not any(masks):
            own = arrays[operand].shape
            ends = shape[len(shape) - len(own) :]
            if (
                own != (1,)
                and list(own) != shape
                and all(s in (1, end) for s, end in zip(own, ends, strict=True))
            ):
                at = subscripts(len(shape))
                along = zip(own, at[len(shape) - len(own) :], strict=True)
                source = {"__x": (operand, ["0" if size == 1 else i for size, i in along])}
                state = visitor._add_state("broadcast")
                operand = pointwise(visitor.sdfg, state, shape, arrays[operand].dtype, "__x", source)
        original(visitor, node, read, written, operand, op, *masks)

    return add


def rising(visitor: Any, node: ast.Assign, target: ast.Subscript) -> ast.Assign:
    """`y[::-1] = x` as `y[:] = x[::-1]`; DaCe does not store backwards."""
    axes = axes_of(target.slice, len(visitor.defined[ast.unparse(target.value)].shape))
    slices = [axis for axis in axes if isinstance(axis, ast.Slice)]
    if any(_number(axis.step) != -1 or _number(axis.upper) == -1 for axis in filter(falls, slices)):
        raise NotImplementedError(f"{ast.unparse(target)}: store by steps of 1 or more, or of -1")
    kept = [axis for axis in axes if isinstance(axis, ast.Slice) or is_new(axis)]
    value = node.value if isinstance(node.value, ast.Name) else computed_ahead(visitor, node.value)
    shape = getattr(visitor.defined.get(ast.unparse(value)), "shape", ())
    turned = [ast.Slice() for _ in shape]
    for at, axis in enumerate(kept, start=-len(kept)):
        if isinstance(axis, ast.Slice) and falls(axis) and at >= -len(shape) and shape[at] != 1:
            turned[at] = ast.Slice(step=axis.step)
    if any(axis.step is not None for axis in turned):
        value = ast.Subscript(value, ast.Tuple([*turned], ast.Load()), ast.Load())
    upwards = [
        ast.Slice(_after(axis.upper), _after(axis.lower))
        if isinstance(axis, ast.Slice) and falls(axis)
        else axis
        for axis in axes
    ]
    place = ast.Subscript(target.value, ast.Tuple(upwards, ast.Load()), ast.Store())
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([place], value), node))


def falls(axis: ast.AST) -> bool:
    """Is it a slice that goes down?"""
    step = _number(axis.step) if isinstance(axis, ast.Slice) else None
    return step is not None and step < 0


def _after(end: ast.expr | None) -> ast.expr | None:
    """The place after an end of a slice that goes down by one; None after the last."""
    if end is None or (number := _number(end)) == -1:
        return None
    return ast.Constant(number + 1) if number is not None else ast.BinOp(end, ast.Add(), ast.Constant(1))


def _number(written: ast.expr | None) -> int | None:
    try:
        value = ast.literal_eval(written) if written is not None else None
    except ValueError:
        return None
    return value if isinstance(value, int) else None
