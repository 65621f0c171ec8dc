"""Places before the first element, which count from the end: `x[i - 1]` where `i` begins with 0. DaCe 1.0
goes on in front of the array."""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import sympy

POLYNOMIAL = {ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.UnaryOp, ast.USub}
"""What sums and products of integers are made of."""


class _Span(NamedTuple):
    """The least and the largest value of a counter, or of what is made of counters; infinite where sizes
    decide."""

    least: float
    largest: float


def count_from_the_end(function: ast.FunctionDef, shapes: Mapping[str, ast.expr]) -> None:
    """In place: places that are in front of an array at times are taken modulo its size, where counters of
    loops alone say the place, and no condition around asks for these.

    shapes: sizes of the function's arguments, `x.shape[0]`, as expressions of what is known outside.
    """
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    steady = {size: written for size, written in shapes.items() if size.split(".")[0] not in stored}
    function.body = [_Wrapping(steady, {}).visit(statement) for statement in function.body]
    ast.fix_missing_locations(function)


class _Wrapping(ast.NodeTransformer):
    """counters: of the loops around."""

    def __init__(self, shapes: Mapping[str, ast.expr], counters: Mapping[str, _Span]) -> None:
        self.shapes, self.counters = shapes, counters

    def visit_For(self, node: ast.For) -> ast.For:
        known = {**self.counters, **dict(_counted(node, self.counters))}
        left = [s for s in node.body if isinstance(s, ast.If) and isinstance(s.body[-1], ast.Continue)]
        inside = self._but({n for skipped in left for n in _names(skipped.test)}, known)
        node.body = [inside.visit(statement) for statement in node.body]
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._but({*_names(node.test)}, self.counters).generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._but({*_names(node.test)}, self.counters).generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        self.generic_visit(node)
        axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(node.value, ast.Name) and not any(map(_shifts_axes, axes)):
            sizes = [self.shapes.get(f"{node.value.id}.shape[{d}]") for d in range(len(axes))]
            placed = [self._placed(*axis) for axis in zip(axes, sizes, strict=True)]
            node.slice = ast.Tuple(placed, ast.Load()) if placed[1:] else placed[0]
        return node

    def _placed(self, place: ast.expr, size: ast.expr | None) -> ast.expr:
        span = _span(place, self.counters)
        if size is None or span is None or span.least >= 0 or not _names(place):
            return place
        wrapped = ast.Add() if span.largest < 0 else ast.Mod()
        return ast.copy_location(ast.BinOp(place, wrapped, copy.deepcopy(size)), place)

    def _but(self, asked: set[str], counters: Mapping[str, _Span]) -> _Wrapping:
        """For what conditions on some counters decide."""
        return _Wrapping(self.shapes, {name: of for name, of in counters.items() if name not in asked})


def _names(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def _shifts_axes(axis: ast.expr) -> bool:
    return isinstance(axis, ast.Starred) or (
        isinstance(axis, ast.Constant) and (axis.value is None or axis.value is Ellipsis)
    )


def _counted(loop: ast.For, around: Mapping[str, _Span]) -> Iterator[tuple[str, _Span]]:
    """The counters of `for i in range(...)` and `for i, j in dace.map[...]`, whose first value is known."""
    match loop.target, loop.iter:
        case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[*ends]) if ends:
            stride = _span(ends[2], {}) if ends[2:] else _Span(1, 1)
            first, last = (ends[0], ends[1]) if ends[1:] else (ast.Constant(0), ends[0])
            spans = [(name, first, last, stride.least if stride else 0.0)]
        case target, ast.Subscript(value=ast.Attribute(attr="map"), slice=axes):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            slices = axes.elts if isinstance(axes, ast.Tuple) else [axes]
            spans = [
                (ast.unparse(n), s.lower or ast.Constant(0), s.upper, 1.0)
                for n, s in zip(names, slices, strict=False)
                if isinstance(s, ast.Slice) and s.upper is not None
            ]
        case _:
            return
    for name, first, last, step in spans:
        begin, end = _span(first, around), _span(last, around)
        if step > 0 and begin is not None:
            yield name, _Span(begin.least, end.largest - 1 if end else math.inf)
        elif step < 0 and end is not None:
            yield name, _Span(end.least + 1, begin.largest if begin else math.inf)


def _span(written: ast.expr, counters: Mapping[str, _Span]) -> _Span | None:
    """Of a sum of counters and integers; None of anything else, and where several counters without an end
    decide, of which one may stop at another."""
    if not {*_names(written)} <= counters.keys() or not {type(n) for n in ast.walk(written)} <= POLYNOMIAL:
        return None
    symbols = {name: sympy.Symbol(name) for name in counters}
    terms = sympy.sympify(ast.unparse(written), symbols).expand().as_coefficients_dict()
    number = float(terms.pop(sympy.S.One, 0))
    ends = [(number, number)]
    for counter, factor in terms.items():
        if not counter.is_Symbol:
            return None
        least, largest = sorted(float(factor) * end for end in counters[counter.name])
        ends.append((least, largest))
    found = _Span(*map(sum, zip(*ends, strict=True)))
    return found if found.least > -math.inf or len(ends) == 2 else None
