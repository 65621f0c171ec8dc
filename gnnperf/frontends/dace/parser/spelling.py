"""What Python has another spelling for, which DaCe 1.0 knows where it refuses the one: `np.copyto(y, x)` is
`y[:] = x`, and a `lambda` with a name is what it says."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gnnperf.frontends.dace.parser.trees import (
    assigned_in,
    expression,
    names_given,
    names_in,
    parsed_instead,
    times_assigned,
)

MOST_FACTORS = 8
"""A power of a matrix is written out up to this one."""


def spell_out(function: ast.FunctionDef, outside: Mapping[str, Any]) -> None:
    """In place.

    outside: global values by name.
    """
    own = {*names_given(function), *(a.arg for a in function.args.args)}
    functions = _named_lambdas(function)
    spelled = _Spelled({n: v for n, v in outside.items() if n not in own}, functions)
    function.body = spelled.block([s for s in function.body if not _is_said(s, functions)])
    ast.fix_missing_locations(function)


def _named_lambdas(function: ast.FunctionDef) -> dict[str, ast.Lambda]:
    """`f = lambda v: ...`, or a function inside that returns one expression: said once, and always called
    with as many arguments."""
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
    plain = ast.unparse(arguments) == ", ".join(a.arg for a in arguments.args)
    used = sum(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in ast.walk(function)
    )
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and ast.unparse(n.func) == name]
    count = len(arguments.args)
    return plain and len(calls) == used and all(len(c.args) == count and not c.keywords for c in calls)


def _is_said(statement: ast.stmt, functions: Mapping[str, ast.Lambda]) -> bool:
    """Does it do nothing but name one of these functions?"""
    if isinstance(statement, ast.FunctionDef):
        return statement.name in functions
    return any(name in functions for name, _ in assigned_in(statement))


def _power(matrix: str, times: str) -> str:
    known = times.isdigit() and 1 <= int(times) <= MOST_FACTORS
    return " @ ".join([f"({matrix})"] * int(times)) if known else ""


def _product(*matrices: str) -> str:
    return " @ ".join(f"({m})" for m in matrices)


def _correlated(one: str, other: str, mode: str = "'valid'") -> str:
    return f"numpy.convolve({one}, {other}[::-1], {mode})" if other.isidentifier() else ""


_SPELLINGS: Mapping[Any, Callable[..., str]] = {
    np.asarray: lambda array: array,
    np.ascontiguousarray: lambda array: array,
    np.ediff1d: lambda array: f"numpy.diff({array})",
    np.angle: lambda numbers: f"numpy.arctan2(numpy.imag({numbers}), numpy.real({numbers}))",
    np.float_power: lambda base, by: f"numpy.power(1.0 * ({base}), {by})",
    np.fix: lambda numbers: f"numpy.trunc({numbers})",
    np.linalg.matrix_power: _power,
    np.correlate: _correlated,
    builtins.pow: lambda base, by: f"({base}) ** ({by})",
}
"""By function: what a call of it with such texts of arguments is; empty where that is not known."""


class _Spelled(ast.NodeTransformer):
    def __init__(self, outside: Mapping[str, Any], functions: Mapping[str, ast.Lambda]) -> None:
        self.outside, self.functions = outside, functions

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            made = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in self.functions:
                return self._applied(self.functions[name], args, node)
            case ast.Call(func=ast.Attribute(value=array, attr="item"), args=[], keywords=[]):
                return array
        text = self._spelling(self._known(node.func), node)
        return ast.copy_location(expression(text), node) if text else node

    def _spelling(self, function: Any, node: ast.Call) -> str:
        """Of a call of a function; empty where that stays."""
        match node.args:
            case [ast.List(elts=matrices)] if function is np.linalg.multi_dot:
                return _product(*map(ast.unparse, matrices))
        if not callable(function) or function not in _SPELLINGS:
            return ""
        named = {word.arg: ast.unparse(word.value) for word in node.keywords if word.arg}
        try:
            return _SPELLINGS[function](*map(ast.unparse, node.args), **named)
        except TypeError:  # it has other arguments, too
            return ""

    def _known(self, function: ast.expr) -> Any:
        """The function that is meant, of the builtins or of a module outside."""
        match function:
            case ast.Name(id=name):
                return self.outside.get(name, getattr(builtins, name, None))
            case ast.Attribute(value=module, attr=attr):
                held = self._known(module)
                return getattr(held, attr, None) if isinstance(held, type(ast)) else None
        return None

    def _applied(self, function: ast.Lambda, args: list[ast.expr], call: ast.Call) -> ast.expr:
        given = dict(zip((a.arg for a in function.args.args), args, strict=True))
        return self.visit(ast.copy_location(_Filled(given).visit(copy.deepcopy(function.body)), call))

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        """`if (v := x) > 1` sets v ahead."""
        ahead: list[ast.stmt] = []
        if not any(isinstance(n, ast.BoolOp) for n in ast.walk(node.test)):
            named = [n for n in ast.walk(node.test) if isinstance(n, ast.NamedExpr)]
            ahead = [ast.copy_location(ast.Assign([n.target], n.value), node) for n in named]
            node.test = _Named().visit(node.test)
        self.generic_visit(node)
        return [*self.block(ahead), node]

    def visit_Delete(self, node: ast.Delete) -> ast.stmt:
        """A name that is not used any more may as well stay."""
        only_names = all(isinstance(target, ast.Name) for target in node.targets)
        return ast.copy_location(ast.Pass(), node) if only_names else node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """`np.copyto(y, x)`, and a product that goes `out`, are assignments."""
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=function, args=[target, value], keywords=[]):
                text = ast.unparse(value) if self._known(function) is np.copyto else ""
            case ast.Call(func=function, args=[a, b], keywords=[ast.keyword(arg="out", value=target)]):
                product = _product(ast.unparse(a), ast.unparse(b))
                text = product if self._known(function) in (np.matmul, np.dot) else ""
            case _:
                return node
        return parsed_instead(f"{ast.unparse(target)}[:] = {text}", node) if text else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        """`q, r = divmod(a, b)` is a quotient and a remainder; `a[[i, j]] = a[[j, i]]` takes rows in turn."""
        sums = self._sums(node)
        self.generic_visit(node)
        match node:
            case ast.Assign(
                targets=[ast.Tuple()], value=ast.Call(func=ast.Name(id="divmod"), args=[one, other])
            ) if "divmod" not in self.outside:
                one_text, by = ast.unparse(one), ast.unparse(other)
                both = expression(f"(({one_text}) // ({by}), ({one_text}) % ({by}))")
                node.value = ast.copy_location(both, node)
            case ast.Assign(
                targets=[ast.Subscript(value=array, slice=ast.List(elts=to))],
                value=ast.Subscript(value=source, slice=ast.List(elts=of)),
            ) if len(to) == len(of):
                rows = [f"row_{node.lineno}_{n}" for n in range(len(of))]
                texts = [
                    f"{r} = numpy.copy({ast.unparse(source)}[{ast.unparse(i)}])"
                    for r, i in zip(rows, of, strict=True)
                ]
                texts += [
                    f"{ast.unparse(array)}[{ast.unparse(i)}] = {r}" for r, i in zip(rows, to, strict=True)
                ]
                return [*sums, *(parsed_instead(text, node) for text in texts)]
        return [*sums, node]

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        sums = self._sums(node)
        self.generic_visit(node)
        return [*sums, node]

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        sums = self._sums(node)
        self.generic_visit(node)
        return [*sums, node]

    def _sums(self, statement: ast.Assign | ast.AugAssign | ast.Return) -> list[ast.stmt]:
        """Loops for `sum(x[i] for i in range(n))`, ahead of a statement that then has their results."""
        summed = _Summed()
        if statement.value is not None:
            statement.value = summed.visit(statement.value)
        return self.block(summed.loops)


class _Filled(ast.NodeTransformer):
    """Arguments in the place of their names."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.given.get(node.id, node))


class _Named(ast.NodeTransformer):
    """Names in the place of what they are given."""

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)


class _Summed(ast.NodeTransformer):
    """Names of sums in the place of `sum(... for ...)`, and the loops that add them up."""

    def __init__(self) -> None:
        self.loops: list[ast.stmt] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Name(id="sum"), args=[(ast.GeneratorExp() | ast.ListComp()) as made], keywords=[]
            ):
                name = f"sum_{node.lineno}_{node.col_offset}"
                own: dict[str, ast.expr] = {}  # counters, whose names mean nothing outside
                inner: list[str] = []
                for each in made.generators:
                    iterated = _text(each.iter, own)
                    own |= {n: ast.Name(f"{n}_{name}", ast.Load()) for n in names_in(each.target)}
                    inner.append(f"for {_text(each.target, own)} in {iterated}:")
                    inner += [f"if {_text(condition, own)}:" for condition in each.ifs]
                inner.append(f"{name} += {_text(made.elt, own)}")
                lines = "\n".join(f"{'    ' * depth}{line}" for depth, line in enumerate(inner))
                self.loops += [parsed_instead(text, node) for text in (f"{name} = 0", lines)]
                return ast.copy_location(ast.Name(name, ast.Load()), node)
        return node


def _text(written: ast.expr, names: Mapping[str, ast.expr]) -> str:
    """Of an expression with other names."""
    return ast.unparse(_Filled(names).visit(copy.deepcopy(written)))
