"""Slices that have a name: `here = (slice(1, -1), slice(2, None))`, `np.s_[1:-1, 2:]`. DaCe 1.0 knows them in
subscripts alone."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnperf.frontends.dace.parser.trees import (
    assigned_in,
    elements,
    expression,
    in_one,
    names_given,
    names_in,
    own_names,
    times_assigned,
)

Slices = Mapping[str, list[ast.expr]]
"""What a name says of each axis."""


def write_slices_out(function: ast.FunctionDef, outside: Mapping[str, Any]) -> None:
    """In place: subscripts say what is taken.

    outside: global values by name.
    """
    own, times, given = own_names(function), times_assigned(function), Counter(names_given(function))
    maker = _Maker(outside)
    named = {
        name: axes
        for name, value in outside.items()
        if name not in own and (axes := _of_values(value)) is not None
    }
    for statement in function.body:
        for name, value in assigned_in(statement):
            stays = times[name] == 1 and all(given[end] <= 1 for end in names_in(value))
            if stays and (axes := maker.axes(value)) is not None:
                named[name] = axes
    _Written(named, maker).visit(function)
    ast.fix_missing_locations(function)


def _of_values(value: Any) -> list[ast.expr] | None:
    """Of a slice, or of a tuple with slices and numbers."""
    parts = value if isinstance(value, tuple) else (value,)
    if not any(isinstance(part, slice) for part in parts):
        return None
    ends = [(p.start, p.stop, p.step) if isinstance(p, slice) else (p,) for p in parts]
    if not all(end is None or type(end) is int or end is Ellipsis for axis in ends for end in axis):
        return None
    texts = (
        ":".join("" if e is None else str(e) for e in axis) if axis[1:] else repr(axis[0]) for axis in ends
    )
    return elements(expression(f"x[{', '.join(texts)}]").slice)  # type: ignore[attr-defined]


class _Maker:
    """Reads what makes slices."""

    def __init__(self, outside: Mapping[str, Any]) -> None:
        self.numpy = {name for name, value in outside.items() if value is np}

    def axes(self, value: ast.expr) -> list[ast.expr] | None:
        """None of what is no slice, and no tuple with one."""
        match value:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=module), attr="s_" | "index_exp"), slice=written
            ) if module in self.numpy:
                return elements(written)
        axes = [self.sliced(part) or part for part in elements(value)]
        return axes if any(isinstance(axis, ast.Slice) for axis in axes) else None

    def sliced(self, value: ast.expr) -> ast.expr | None:
        match value:
            case ast.Call(func=ast.Name(id="slice"), args=args, keywords=[]) if 0 < len(args) < 4:
                ends = [None if isinstance(a, ast.Constant) and a.value is None else a for a in args]
                return ast.Slice(*(ends if ends[1:] else [None, *ends]))
        return None


class _Written(ast.NodeTransformer):
    def __init__(self, named: Slices, maker: _Maker) -> None:
        self.named, self.maker = named, maker

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        given = assigned_in(node)
        left = [(name, value) for name, value in given if name not in self.named]
        if given and not left:
            return ast.copy_location(ast.Pass(), node)
        if len(left) < len(given):
            targets, values = zip(
                *((ast.Name(name, ast.Store()), value) for name, value in left), strict=True
            )
            node.targets, node.value = [in_one([*targets])], in_one([*values])
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        axes: list[ast.expr] = []
        for axis in elements(node.slice):
            match axis:
                case ast.Name(id=name) if name in self.named:
                    axes += self.named[name]
                case ast.Starred(value=ast.Name(id=name)) if name in self.named:
                    axes += self.named[name]
                case _:
                    axes.append(self.maker.sliced(axis) or axis)
        node.slice = in_one(axes)
        return node
