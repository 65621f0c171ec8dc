"""What Python has another spelling for, which DaCe 1.0 knows where it refuses the one: `np.copyto(y, x)` is
`y[:] = x`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gnnperf.frontends.dace.parser.trees import elements, expression, own_names, parsed_instead

MOST_FACTORS = 8
"""A power of a matrix is written out up to this one."""


def spell_out(function: ast.FunctionDef, outside: Mapping[str, Any]) -> None:
    """In place.

    outside: global values by name.
    """
    own = own_names(function)
    _Spelled({name: value for name, value in outside.items() if name not in own}).visit(function)
    ast.fix_missing_locations(function)


def _power(matrix: str, times: str) -> str:
    known = times.isdigit() and 1 <= int(times) <= MOST_FACTORS
    return " @ ".join([f"({matrix})"] * int(times)) if known else ""


def _product(*matrices: str) -> str:
    return " @ ".join(f"({m})" for m in matrices)


def _appended(array: str, more: str) -> str:
    """To an array of one axis: a number, an element of an array, or an array."""
    match expression(more):
        case ast.Constant():
            more = f"(numpy.zeros((1,)) + {more})"
        case ast.Subscript(value=held, slice=ast.Constant(value=int() as at)):
            more = f"{ast.unparse(held)}[{at}:{at + 1}]"
        case ast.Subscript(value=held, slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))):
            more = f"{ast.unparse(held)}[-1:]"
        case ast.Name():
            pass
        case _:
            return ""
    return f"numpy.concatenate(({array}, {more}))"


def _correlated(one: str, other: str, mode: str = "'valid'") -> str:
    return f"numpy.convolve({one}, {other}[::-1], {mode})" if other.isidentifier() else ""


_SPELLINGS: Mapping[Any, Callable[..., str]] = {
    np.append: _appended,
    np.asarray: lambda array: array,
    np.ascontiguousarray: lambda array: array,
    np.ediff1d: lambda array: f"numpy.diff({array})",
    np.angle: lambda numbers: f"numpy.arctan2(numpy.imag({numbers}), numpy.real({numbers}))",
    np.float_power: lambda base, by: f"numpy.power(1.0 * ({base}), {by})",
    np.fix: lambda numbers: f"numpy.trunc({numbers})",
    np.linalg.matrix_power: _power,
    np.correlate: _correlated,
    builtins.complex: lambda real, imag: f"(({real}) + 1j * ({imag}))",
    builtins.pow: lambda base, by: f"({base}) ** ({by})",
}
"""By function: what a call of it with such texts of arguments is; empty where that is not known."""


_METHODS = frozenset(
    "all any argmax argmin clip cumprod cumsum dot max mean min prod repeat reshape round std sum var".split()
)
"""Of arrays, which are functions of NumPy, too. DaCe evaluates what stands before the point, if that is no
name, where its `np.newaxis` has no value."""


class _Spelled(ast.NodeTransformer):
    def __init__(self, outside: Mapping[str, Any]) -> None:
        self.outside = outside

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=array, attr="item"), args=[], keywords=[]):
                return array
            case ast.Call(func=ast.Attribute(value=ast.BinOp() | ast.UnaryOp() as value, attr=attr)) if (
                attr in _METHODS
            ):
                node = ast.copy_location(
                    ast.Call(expression(f"numpy.{attr}"), [value, *node.args], node.keywords), node
                )
            case ast.Call(
                func=ast.Attribute(value=ast.Subscript() as part, attr="conj" | "conjugate"), args=[]
            ):
                return ast.copy_location(expression(f"numpy.conj({ast.unparse(part)})"), node)
        text = self._spelling(self._known(node.func), node)
        return ast.copy_location(expression(text), node) if text else node

    def _spelling(self, function: Any, node: ast.Call) -> str:
        """Of a call of a function; empty where that stays."""
        match node.args:
            case [ast.List(elts=matrices)] if function is np.linalg.multi_dot:
                return _product(*map(ast.unparse, matrices))
        of_scipy = str(getattr(function, "__module__", None)).startswith("scipy.fft")
        if of_scipy and hasattr(np.fft, function.__name__):
            transform = expression(f"numpy.fft.{function.__name__}")
            return ast.unparse(ast.Call(transform, node.args, node.keywords))
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

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        """`if (v := x) > 1` sets v ahead."""
        ahead: list[ast.stmt] = []
        if not any(isinstance(n, ast.BoolOp) for n in ast.walk(node.test)):
            named = [n for n in ast.walk(node.test) if isinstance(n, ast.NamedExpr)]
            ahead = [self.visit(ast.copy_location(ast.Assign([n.target], n.value), node)) for n in named]
            node.test = _Named().visit(node.test)
        self.generic_visit(node)
        return [*ahead, node]

    def visit_Delete(self, node: ast.Delete) -> ast.stmt:
        """A name that is not used any more may as well stay."""
        only_names = all(isinstance(target, ast.Name) for target in node.targets)
        return ast.copy_location(ast.Pass(), node) if only_names else node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """`np.copyto(y, x)`, `x.sort()` and a product that goes `out` are assignments."""
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Attribute(value=target, attr="sort"), keywords=keywords, args=args):
                sort = ast.Call(expression("numpy.sort"), [target, *args], keywords)
                text = ast.unparse(sort)
            case ast.Call(func=function, args=[target, value], keywords=[]):
                text = ast.unparse(value) if self._known(function) is np.copyto else ""
            case ast.Call(func=function, args=[a, b], keywords=[ast.keyword(arg="out", value=target)]):
                product = _product(ast.unparse(a), ast.unparse(b))
                text = product if self._known(function) in (np.matmul, np.dot) else ""
            case _:
                return node
        return parsed_instead(f"{ast.unparse(target)}[:] = {text}", node) if text else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        """`q, r = divmod(a, b)` is a quotient and a remainder; `a[[i, j]] = a[[j, i]]` takes rows in turn;
        `z.real[:] = x` is all of z."""
        match node:
            case ast.Assign(targets=[target]) if part := _part_of_complex(target):
                made = parsed_instead(_with_part(*part, ast.unparse(node.value)), node)
                self.generic_visit(made)
                return made
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
                return [parsed_instead(text, node) for text in texts]
        self.generic_visit(node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | list[ast.stmt]:
        """`z.real += x` is `z.real = z.real + x`."""
        if _part_of_complex(node.target):
            before = expression(ast.unparse(node.target))
            new = ast.Assign([node.target], ast.BinOp(before, node.op, node.value))
            return self.visit_Assign(ast.copy_location(new, node))
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """`a[:, [0, -1]]` is parts put side by side."""
        self.generic_visit(node)
        axes = elements(node.slice)
        lists = [(n, axis.elts) for n, axis in enumerate(axes) if isinstance(axis, ast.List)]
        sliced = all(isinstance(axis, ast.Slice | ast.List) for axis in axes)
        if (
            len(lists) != 1
            or not sliced
            or not isinstance(node.ctx, ast.Load)
            or not isinstance(node.value, ast.Name)
        ):
            return node
        ((at, places),) = lists
        texts = [*map(ast.unparse, axes)]
        parts = []
        for place in map(ast.unparse, places):
            texts[at] = f"{place}:" if place == "-1" else f"{place}:{place} + 1"
            parts.append(f"{node.value.id}[{', '.join(texts)}]")
        text = f"numpy.concatenate(({', '.join(parts)},), axis={at})"
        return ast.copy_location(expression(text), node)


def _part_of_complex(target: ast.expr) -> tuple[str, str] | None:
    """Of `z.real[1:]` the array's part that is stored to, `z[1:]`, and which part of its numbers."""
    match target:
        case ast.Subscript(value=ast.Attribute(value=array, attr="real" | "imag" as part), slice=at):
            return f"{ast.unparse(array)}[{ast.unparse(at)}]", part
        case ast.Attribute(value=array, attr="real" | "imag" as part):
            whole = "" if isinstance(array, ast.Subscript) else "[:]"
            return ast.unparse(array) + whole, part
    return None


def _with_part(numbers: str, part: str, value: str) -> str:
    """The statement that stores to one part of complex numbers."""
    parts = {"real": f"numpy.real({numbers})", "imag": f"numpy.imag({numbers})", part: f"({value})"}
    return f"{numbers} = {parts['real']} + 1j * {parts['imag']}"


class _Named(ast.NodeTransformer):
    """Names in the place of what they are given."""

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        return ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
