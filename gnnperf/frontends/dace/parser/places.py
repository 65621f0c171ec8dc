"""Elements that arrays of places choose, `a[:, p]` and `a[p, q] = v`: DaCe 1.0 takes others, or refuses."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
from dace import data

from gnnperf.frontends.dace.parser.trees import computed_ahead, elements, expression, in_one, parsed_instead


def taken(visitor: Any, part: ast.Subscript) -> ast.expr | None:
    """In the place of `a[:, places]`, and of `a[places, 1]`: what is taken along one axis. None where no
    array, or several, say which elements."""
    axes, said = _axes(visitor, part)
    if len(said) != 1 or len(axes) == 1:
        return None
    (at,) = said
    array: ast.expr = part.value
    if not all(n == at or _is_whole(axis) for n, axis in enumerate(axes)):
        others = [ast.Slice() if n == at else axis for n, axis in enumerate(axes)]
        row = ast.Subscript(part.value, in_one(others), ast.Load())
        array = computed_ahead(visitor, ast.fix_missing_locations(ast.copy_location(row, part)))
    axis = ast.keyword("axis", ast.Constant(sum(isinstance(before, ast.Slice) for before in axes[:at])))
    call = ast.Call(expression("numpy.take"), [array, axes[at]], [axis])
    return ast.fix_missing_locations(ast.copy_location(call, part))


def stored(visitor: Any, node: ast.Assign | ast.AugAssign) -> ast.stmt | None:
    """In the place of a store to elements that arrays of places choose: the loops that it is. Of `a[p] += v`:
    a store of what it comes to, so that a place that is there twice counts once. None for others."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    axes, said = _axes(visitor, target)
    lists = all(len(visitor.defined[ast.unparse(axes[n])].shape) == 1 for n in said)
    if not said or not lists or not all(_is_whole(a) for a in axes if isinstance(a, ast.Slice)):
        return None
    if isinstance(node, ast.AugAssign):
        read = ast.Subscript(target.value, target.slice, ast.Load())
        total = ast.copy_location(ast.BinOp(ast.copy_location(read, target), node.op, node.value), node)
        value = computed_ahead(visitor, total)
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), node))
    return _loops(visitor, node, target, axes, said)


def _loops(
    visitor: Any, node: ast.Assign, target: ast.Subscript, axes: list[ast.expr], said: list[int]
) -> ast.stmt | None:
    array, adjacent = ast.unparse(target.value), said == [*range(said[0], said[-1] + 1)]
    held = isinstance(node.value, ast.Name | ast.Constant)
    value = node.value if held else computed_ahead(visitor, node.value)
    shape = getattr(visitor.defined.get(ast.unparse(value)), "shape", (1,))
    counters: dict[str, str] = {}
    places = []
    for n, axis in enumerate(axes):
        text, counter = ast.unparse(axis), f"place_{node.lineno}_{said[0] if n in said else n}"
        if n in said:
            counters.setdefault(counter, f"len({text})")
            places.append(f"{text}[{counter}]")
        elif _is_whole(axis):
            counters[counter] = f"{array}.shape[{n}]"
            places.append(counter)
        else:
            places.append(text)
    if not adjacent or (shape != (1,) and len(shape) != len(counters)):
        return None
    read = ast.unparse(value) + (f"[{', '.join(counters)}]" if shape != (1,) else "")
    text = f"{array}[{', '.join(places)}] = {read}"
    for counter, size in reversed(counters.items()):
        text = f"for {counter} in range({size}):\n" + "\n".join(f"    {line}" for line in text.splitlines())
    return parsed_instead(text, node)


def are_computed(visitor: Any, axis: ast.expr) -> bool:
    """Are places on an axis made of arrays of integers: `a[p % n]`?"""
    inside = isinstance(axis, ast.BinOp | ast.UnaryOp) and not any(
        isinstance(n, ast.Subscript) for n in ast.walk(axis)
    )
    return inside and any(_is_places(visitor, n) for n in ast.walk(axis) if isinstance(n, ast.Name))


def _axes(visitor: Any, part: ast.Subscript) -> tuple[list[ast.expr], list[int]]:
    """What a subscript says of every axis, and which of them are arrays of places. Without these it may say
    less than all."""
    axes = elements(part.slice)
    said = [n for n, axis in enumerate(axes) if _is_places(visitor, axis)]
    rank = len(visitor.defined[ast.unparse(part.value)].shape) if said else 0
    return [*axes, *[ast.Slice()] * (rank - len(axes))], said


def _is_whole(axis: ast.expr) -> bool:
    return ast.unparse(axis) == ":"


def _is_places(visitor: Any, axis: ast.expr) -> bool:
    """Is it the name of an array of integers?"""
    held = visitor.defined.get(axis.id) if isinstance(axis, ast.Name) else None
    if not isinstance(held, data.Array) or held.shape == (1,):
        return False
    return np.dtype(held.dtype.type).kind in "iu"
