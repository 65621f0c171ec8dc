"""Names of sizes: `n, m = x.shape; half = N // 2`, with which DaCe 1.0 makes no array and takes no slice."""

from __future__ import annotations

import ast
import contextlib
import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any

import dace

from gnnperf.frontends.dace.parser.trees import expression, names_given
from gnnperf.frontends.dace.parser.wrapping import POLYNOMIAL


def write_sizes_out(tree: ast.FunctionDef, function: Any) -> None:
    """In place: what names of sizes stand for in their place, where they stand for one thing."""
    _write_out(tree, _symbols(function), numbers_outside(function))


def _symbols(function: Any) -> dict[str, ast.expr]:
    """`x.shape[0]` of annotated arguments as polynomials of symbols, where they are that."""
    known = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        if isinstance(annotation, str):
            with contextlib.suppress(Exception):  # what a user wrote there may be anything
                annotation = eval(annotation, function.__globals__)
        for at, size in enumerate(getattr(annotation, "shape", None) or ()):
            written = expression(str(size))
            parts = [*ast.walk(written)]
            if {type(part) for part in parts} <= POLYNOMIAL and all(
                function.__globals__.get(part.id) in size.free_symbols
                for part in parts
                if isinstance(part, ast.Name)
            ):
                known[f"{name}.shape[{at}]"] = written
    return known


def numbers_outside(function: Any) -> set[str]:
    """Global names of symbols and of integers."""
    names = getattr(function, "__globals__", {}).items()
    return {name for name, value in names if isinstance(value, dace.symbol) or type(value) is int}


def _write_out(function: ast.FunctionDef, known: Mapping[str, ast.expr], numbers: Set[str]) -> None:
    stores = Counter(names_given(function))
    arguments = {a.arg for a in function.args.args}
    steady = {n for n in arguments if not stores[n]} | {n for n, count in stores.items() if count == 1}
    outside = {name: ast.Name(name, ast.Load()) for name in numbers - arguments - stores.keys()}
    sizes: dict[str, ast.expr] = {}
    kept: list[ast.stmt] = []
    for statement in function.body:
        named = dict(_named(statement, steady, {**outside, **sizes}))
        if named and all((stores[n] == 1 and n not in arguments) or n == "_" for n in named):
            sizes |= named
        else:
            kept.append(statement)
    if sizes:
        function.body = [_Sizes(sizes, known).visit(statement) for statement in kept] or [ast.Pass()]
        ast.fix_missing_locations(function)


def _named(
    statement: ast.stmt, steady: set[str], sizes: Mapping[str, ast.expr]
) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement gives to sizes of arrays that stay the same, if it does nothing else."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pairs = [(name, value)]
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pairs = [(ast.unparse(n), v) for n, v in zip(names, values, strict=False)]
        case ast.Assign(
            targets=[ast.Tuple(elts=names)], value=ast.Attribute(value=ast.Name(id=array), attr="shape")
        ) if array in steady:
            values = [expression(f"{array}.shape[{at}]") for at in range(len(names))]
            pairs = [(ast.unparse(n), v) for n, v in zip(names, values, strict=True)]
        case _:
            return
    found = [(name, _size(value, steady, sizes)) for name, value in pairs]
    if all(name.isidentifier() and size is not None for name, size in found):
        yield from ((name, size) for name, size in found if size is not None)


def _size(value: ast.expr, steady: set[str], sizes: Mapping[str, ast.expr]) -> ast.expr | None:
    """The expression without names of sizes; None where it is no size."""
    match value:
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=array), attr="shape"), slice=ast.Constant()
        ) if array in steady:
            return value
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=array)], keywords=[]) if array in steady:
            return expression(f"{array}.shape[0]")
        case ast.Name(id=name):
            return sizes.get(name)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() as op, right=right):
            sides = [v if isinstance(v, ast.Constant) else _size(v, steady, sizes) for v in (left, right)]
            one, other = sides
            if one is None or other is None or all(isinstance(s, ast.Constant) for s in sides):
                return None
            return ast.BinOp(one, op, other)
    return None


class _Sizes(ast.NodeTransformer):
    """In place of names of sizes, what they stand for."""

    def __init__(self, sizes: Mapping[str, ast.expr], known: Mapping[str, ast.expr]) -> None:
        self.sizes, self.known = sizes, known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.sizes or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(self.visit(copy.deepcopy(self.sizes[node.id])), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        size = self.known.get(ast.unparse(node))
        if size is not None:
            return ast.copy_location(copy.deepcopy(size), node)
        self.generic_visit(node)
        return node
