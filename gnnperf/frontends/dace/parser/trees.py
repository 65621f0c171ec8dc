"""Syntax trees of what stands in the place of other code."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from dace import data

Tree = TypeVar("Tree", bound=ast.AST)


def computed_ahead(visitor: Any, value: ast.expr) -> ast.expr:
    """What is computed ahead of a statement, under a name."""
    place = f"{value.lineno}_{value.col_offset}_{value.end_col_offset}"  # those inside it begin there, too
    name = data.find_new_name(f"held_{place}", {*visitor.variables})
    target, read = (ast.copy_location(ast.Name(name, to), value) for to in (ast.Store(), ast.Load()))
    visitor.visit(ast.copy_location(ast.Assign([target], value), value))
    return read


def parsed_instead(text: str, instead: ast.AST) -> ast.stmt:
    """A statement in the place of another."""
    (statement,) = ast.parse(text).body
    for part in ast.walk(statement):
        ast.copy_location(part, instead)
    return statement


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def elements(written: ast.expr) -> list[ast.expr]:
    """Of a tuple, such as the places in a subscript; what is none has one."""
    return list(written.elts) if isinstance(written, ast.Tuple) else [written]


def in_one(written: list[ast.expr]) -> ast.expr:
    """The tuple of several, as `elements` has them."""
    return ast.Tuple(written, ast.Load()) if written[1:] else written[0]


def filled(node: Tree, values: Mapping[str, ast.expr]) -> Tree:
    """A copy with expressions in the place of names."""
    found: Tree = _Filled(values).visit(copy.deepcopy(node))
    return found


class _Filled(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = copy.deepcopy(self.values.get(node.id, node))
        if isinstance(value, ast.Name):
            value.ctx = node.ctx
        return value


def names_in(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def names_given(node: ast.AST) -> list[str]:
    """Names that are given a value, each as often as it is."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def own_names(function: ast.FunctionDef) -> set[str]:
    """Of arguments, and of what is given a value in it."""
    return {*names_given(function), *(a.arg for a in function.args.args)}


def stored_in(statement: ast.stmt) -> Iterator[str]:
    """Names of arrays that a statement, or one inside of it, changes where they are."""
    for part in ast.walk(statement):
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            yield ast.unparse(part.value)
        elif isinstance(part, ast.AugAssign):
            yield ast.unparse(part.target)


def assigned_in(node: ast.AST) -> list[tuple[str, ast.expr]]:
    """Variables and what a statement assigns to them."""
    match node:
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            return [(name, ast.BinOp(ast.Name(name, ast.Load()), op, value))]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = [*zip(targets, values, strict=False)]
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case _:
            return []
    return [(target.id, value) for target, value in pairs if isinstance(target, ast.Name)]


def times_assigned(function: ast.FunctionDef) -> Counter[str]:
    """How often something is assigned to each name, without `+=`."""
    return Counter(
        name for s in ast.walk(function) if isinstance(s, ast.Assign) for name, _ in assigned_in(s)
    )
