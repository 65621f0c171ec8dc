"""Functions inside of a program that are one expression, `f = lambda v: ...` among them, written out where
they are called: DaCe 1.0 has none."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from gnnperf.frontends.dace.parser.trees import assigned_in, filled, names_in, times_assigned


def write_functions_out(function: ast.FunctionDef) -> None:
    """In place. What is called otherwise than with its arguments in their order stays."""
    functions = _inner_functions(function)
    function.body = [statement for statement in function.body if not _is_said(statement, functions)]
    _Applied(functions).visit(function)
    ast.fix_missing_locations(function)


def _inner_functions(function: ast.FunctionDef) -> dict[str, ast.Lambda]:
    times = times_assigned(function)
    said: list[tuple[str, ast.Lambda]] = []
    for statement in function.body:
        match statement:
            case ast.FunctionDef(name=name, args=args, body=[ast.Return(value=ast.expr() as value)]):
                said.append((name, ast.Lambda(args, value)))
            case _:
                pairs = assigned_in(statement)
                said += [(name, v) for name, v in pairs if isinstance(v, ast.Lambda) and times[name] == 1]
    found: dict[str, ast.Lambda] = {}
    for name, made in said:
        others = {other for other, _ in said} & {*names_in(made.body)}
        if found.keys() >= others and _is_called_with(function, name, made.args):  # none that calls itself
            found[name] = made
    return found


def _is_called_with(function: ast.FunctionDef, name: str, arguments: ast.arguments) -> bool:
    """Is it always called, and with a value for each argument?"""
    plain = ast.unparse(arguments) == ", ".join(a.arg for a in arguments.args)
    used = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and ast.unparse(n.func) == name]
    given = {len(call.args) for call in calls if not call.keywords}
    read = [n for n in used if isinstance(n.ctx, ast.Load)]
    return plain and len(calls) == len(read) and given == {len(arguments.args)}


def _is_said(statement: ast.stmt, functions: Mapping[str, ast.Lambda]) -> bool:
    """Does it do nothing but name one of these functions?"""
    if isinstance(statement, ast.FunctionDef):
        return statement.name in functions
    return any(name in functions for name, _ in assigned_in(statement))


class _Applied(ast.NodeTransformer):
    def __init__(self, functions: Mapping[str, ast.Lambda]) -> None:
        self.functions = functions

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function = self.functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if function is None:
            return node
        given = dict(zip((a.arg for a in function.args.args), node.args, strict=True))
        made: ast.expr = self.visit(filled(function.body, given))
        return ast.copy_location(made, node)
