"""Places before the first element, which count from the end: `x[i - 1]` where `i` begins with 0. DaCe 1.0
goes on in front of the array."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import sympy

from gnnperf.frontends.dace.parser.trees import assigned_in, elements, expression, in_one, names_in

POLYNOMIAL = {ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.UnaryOp, ast.USub}
"""What sums and products of integers are made of."""


class _Span(NamedTuple):
    """The least and the largest value of a counter, or of what is made of counters; infinite where sizes
    decide. is_free: they do not depend on other counters."""

    least: float
    largest: float
    is_free: bool = True


def count_from_the_end(function: ast.FunctionDef) -> None:
    """In place: places that are in front of an array at times are taken modulo its size, where counters of
    loops alone say the place, and no condition around asks for these."""
    wrapping = _Wrapping({*_arrays(function)}, {})
    function.body = [wrapping.visit(statement) for statement in function.body]
    ast.fix_missing_locations(function)


MADE_BY = frozenset("zeros empty ones full zeros_like empty_like ones_like full_like copy ndarray".split())
"""Functions that give arrays."""


def _arrays(function: ast.FunctionDef) -> Iterator[str]:
    """Names that stand for one array: arguments, and what is made."""
    given = Counter(name for statement in ast.walk(function) for name, _ in assigned_in(statement))
    yield from (
        a.arg for a in function.args.args if isinstance(a.annotation, ast.Subscript) and not given[a.arg]
    )
    for name, value in (pair for statement in ast.walk(function) for pair in assigned_in(statement)):
        if given[name] == 1 and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            if value.func.attr in MADE_BY:
                yield name


@dataclass
class _Wrapping(ast.NodeTransformer):
    arrays: Set[str]
    counters: Mapping[str, _Span]
    """Of the loops around."""

    def visit_For(self, node: ast.For) -> ast.For:
        known = {**self.counters, **dict(_counted(node, self.counters))}
        left = [s for s in node.body if isinstance(s, ast.If) and isinstance(s.body[-1], ast.Continue)]
        inside = self._but({n for skipped in left for n in names_in(skipped.test)}, known)
        node.body = [inside.visit(statement) for statement in node.body]
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        return self._but({*names_in(node.test)}, self.counters).generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._but({*names_in(node.test)}, self.counters).generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        self.generic_visit(node)
        axes = elements(node.slice)
        array = ast.unparse(node.value)
        if array in self.arrays and not any(map(_shifts_axes, axes)):
            placed = [self._placed(at, f"{array}.shape[{d}]") for d, at in enumerate(axes)]
            node.slice = in_one(placed)
        return node

    def _placed(self, place: ast.expr, size: str) -> ast.expr:
        span = _span(place, self.counters)
        if span is None or span.least >= 0 or not names_in(place):
            return place
        wrapped = ast.Add() if span.largest < 0 else ast.Mod()
        return ast.copy_location(ast.BinOp(place, wrapped, expression(size)), place)

    def _but(self, asked: set[str], counters: Mapping[str, _Span]) -> _Wrapping:
        """For what conditions on some counters decide."""
        return _Wrapping(self.arrays, {name: of for name, of in counters.items() if name not in asked})


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
            names = elements(target)
            slices = elements(axes)
            spans = [
                (ast.unparse(n), s.lower or ast.Constant(0), s.upper, 1.0)
                for n, s in zip(names, slices, strict=False)
                if isinstance(s, ast.Slice) and s.upper is not None
            ]
        case _:
            return
    for name, first, last, step in spans:
        begin, end = _span(first, around), _span(last, around)
        is_free = around.keys().isdisjoint([*names_in(first), *names_in(last)])
        if step > 0 and begin is not None:
            yield name, _Span(begin.least, end.largest - 1 if end else math.inf, is_free)
        elif step < 0 and end is not None:
            yield name, _Span(end.least + 1, begin.largest if begin else math.inf, is_free)


def _span(written: ast.expr, counters: Mapping[str, _Span]) -> _Span | None:
    """Of a sum of counters and integers; None of anything else, and where several counters without an end
    decide, of which one stops at another."""
    if not {*names_in(written)} <= counters.keys() or not {type(n) for n in ast.walk(written)} <= POLYNOMIAL:
        return None
    terms = dict(_terms(ast.unparse(written), frozenset(names_in(written))))
    number = float(terms.pop(sympy.S.One, 0))
    ends = [(number, number)]
    for counter, factor in terms.items():
        if not counter.is_Symbol:
            return None
        least, largest = sorted(float(factor) * end for end in counters[counter.name][:2])
        ends.append((least, largest))
    least, largest = map(sum, zip(*ends, strict=True))
    is_free = len(terms) < 2 or all(counters[counter.name].is_free for counter in terms)
    return _Span(least, largest, is_free) if least > -math.inf or is_free else None


@cache
def _terms(text: str, names: Set[str]) -> Mapping[Any, Any]:
    """Factors in a sum, by what they are of: programs say the same places often."""
    written: Any = sympy.sympify(text, {name: sympy.Symbol(name) for name in names})
    return dict(written.expand().as_coefficients_dict())
