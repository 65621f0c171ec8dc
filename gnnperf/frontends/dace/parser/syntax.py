"""Expressions that DaCe 1.0's parser refuses, said in those that it knows."""

from __future__ import annotations

import ast
from functools import wraps
from typing import Any

import dace
from dace import data

from gnnperf.frontends.dace.parser.slices import Method


def assigning(original: Method) -> Method:
    """A second name for a number is a number of its own: after `before = now`, DaCe has both be one variable,
    which `now += 1` changes. `y = a if c else b` is two statements."""

    @wraps(original)
    def assign(visitor: Any, node: ast.Assign) -> Any:
        match node:
            case ast.Assign(targets=[ast.Name(id=new)], value=ast.Name(id=old) as value):
                held = visitor.sdfg.arrays.get(visitor.variables.get(old, old))
                if isinstance(held, data.Scalar) and not visitor.defined.get(new):
                    copied = ast.copy_location(ast.UnaryOp(ast.UAdd(), value), value)
                    node = ast.copy_location(ast.Assign(node.targets, copied), node)
            case ast.Assign(targets=targets, value=ast.IfExp(test=test, body=one, orelse=other)):
                either, or_else = (ast.copy_location(ast.Assign(targets, v), node) for v in (one, other))
                return visitor.visit(ast.copy_location(ast.If(test, [either], [or_else]), node))
        return original(visitor, node)

    return assign


def converting(original: Method) -> Method:
    """`int(x[i])`, and types under names of their own, convert."""

    @wraps(original)
    def call(visitor: Any, node: ast.Call, *rest: Any, **more: Any) -> Any:
        match node:
            case ast.Call(func=ast.Name(id="int" | "float" | "bool" as kind), args=[number], keywords=[]):
                names = {n.id for n in ast.walk(number) if isinstance(n, ast.Name)}
                if names & {*visitor.defined, *visitor.sdfg.arrays} - set(map(str, visitor.sdfg.symbols)):
                    _convert(node, {"int": "int64", "float": "float64", "bool": "bool"}[kind])
            case ast.Call(func=ast.Constant(value=dace.typeclass() as dtype)):
                _convert(node, dtype.to_string())
            case ast.Call(
                func=ast.Attribute(value=function, attr="at"), args=[array, ast.Name() as places, *terms]
            ):
                if (sign := {"numpy.add": "+", "numpy.subtract": "-"}.get(ast.unparse(function))) and len(
                    terms
                ) == 1:
                    return visitor.visit(_at_places(visitor, node, sign, array, places, terms[0]))
        return original(visitor, node, *rest, **more)

    return call


def _at_places(
    visitor: Any, node: ast.Call, sign: str, array: ast.expr, places: ast.Name, term: ast.expr
) -> ast.stmt:
    """`np.add.at(array, places, terms)` as the loop that it is."""
    at, held = f"place_{node.lineno}", visitor.defined.get(ast.unparse(term))
    each = f"[{at}]" if getattr(held, "shape", (1,)) != (1,) else ""
    target = f"{ast.unparse(array)}[{places.id}[{at}]]"
    text = f"for {at} in range(len({places.id})):\n    {target} {sign}= {ast.unparse(term)}{each}"
    return _parsed(text, node)


def _convert(node: ast.Call, dtype: str) -> None:
    """Have a call be one of DaCe's conversions."""
    module = ast.copy_location(ast.Name("dace", ast.Load()), node)
    node.func = ast.copy_location(ast.Attribute(module, dtype, ast.Load()), node)


def dividing(original: Method) -> Method:
    """`i / N` of counters and symbols is no integer. Real numbers have `//` and `%`, too."""

    @wraps(original)
    def divide(visitor: Any, node: ast.BinOp) -> Any:
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and _is_real(visitor, node):
            one, other = ast.unparse(node.left), ast.unparse(node.right)
            floor = f"numpy.floor(({one}) / ({other}))"
            text = floor if isinstance(node.op, ast.FloorDiv) else f"({one}) - {floor} * ({other})"
            made = _parsed(text, node)
            assert isinstance(made, ast.Expr)
            return visitor.visit(made.value)
        if isinstance(node.op, ast.Div) and _is_integer(visitor, node.left):
            if _is_integer(visitor, node.right):
                real = ast.copy_location(ast.BinOp(ast.Constant(1.0), ast.Mult(), node.left), node)
                ast.fix_missing_locations(real)
                node = ast.copy_location(ast.BinOp(real, node.op, node.right), node)
        return original(visitor, node)

    return divide


def _is_real(visitor: Any, node: ast.expr) -> bool:
    """Is it computed from a real number, or several?"""
    match node:
        case ast.Constant(value=float()):
            return True
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            name = visitor.variables.get(name, name)
            held = visitor.sdfg.arrays.get(name, visitor.scope_arrays.get(name))
            return held is not None and held.dtype in (dace.float32, dace.float64)
        case ast.UnaryOp(operand=operand):
            return _is_real(visitor, operand)
        case ast.BinOp(left=left, right=right):
            return _is_real(visitor, left) or _is_real(visitor, right)
    return False


def _is_integer(visitor: Any, node: ast.expr) -> bool:
    """Is it computed from counters, symbols and integers alone?"""
    match node:
        case ast.Constant(value=int()):
            return True
        case ast.Name(id=name):
            known = {**visitor.globals, **visitor.defined}.get(name)
            if isinstance(known, dace.symbolic.symbol):
                return known.dtype in dace.dtypes.INTEGER_TYPES
            return name in visitor.sdfg.symbols and name not in visitor.sdfg.arrays
        case ast.UnaryOp(operand=operand):
            return _is_integer(visitor, operand)
        case ast.BinOp(left=left, op=op, right=right):
            sides = _is_integer(visitor, left) and _is_integer(visitor, right)
            return sides and not isinstance(op, ast.Div | ast.Pow)
    return False


def visit_choice(visitor: Any, node: ast.IfExp) -> Any:
    """A choice inside an expression is made ahead of it."""
    return visitor.visit(_held(visitor, node))


def comparing(original: Method) -> Method:
    """`a < b < c` is two comparisons."""

    @wraps(original)
    def compare(visitor: Any, node: ast.Compare) -> Any:
        if len(node.ops) == 1:
            return original(visitor, node)
        sides = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.copy_location(ast.Compare(left, [op], [right]), node)
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return visitor.visit(ast.copy_location(ast.BoolOp(ast.And(), pairs), node))

    return compare


def counting(original: Method) -> Method:
    """Loops over elements, `for value in x`, and with `enumerate` or `zip`, count and take elements."""

    @wraps(original)
    def loop(visitor: Any, node: ast.For) -> Any:
        counter: ast.expr = ast.Name(f"place_{node.lineno}", ast.Store())
        match node:
            case ast.For(
                target=ast.Tuple(elts=[counted, value]),
                iter=ast.Call(func=ast.Name(id="enumerate"), args=[array], keywords=[]),
            ):
                counter, taken = counted, [(value, array)]
            case ast.For(target=ast.Tuple(elts=values), iter=ast.Call(func=ast.Name(id="zip"), args=arrays)):
                taken = [*zip(values, arrays, strict=True)]
            case ast.For(iter=ast.Name(id=name)) if getattr(visitor.defined.get(name), "shape", (1,)) != (1,):
                taken = [(node.target, node.iter)]
            case _:
                return original(visitor, node)
        place = ast.unparse(counter)
        takes = [f"{ast.unparse(value)} = {ast.unparse(array)}[{place}]" for value, array in taken]
        lines = [f"for {place} in range(len({ast.unparse(taken[0][1])})):", *takes]
        made = _parsed("\n    ".join(lines), node)
        assert isinstance(made, ast.For)
        made.body += node.body
        return original(visitor, made)

    return loop


def repeating(original: Method) -> Method:
    """`while k < most`, where `most` is an argument: DaCe takes that for a symbol."""

    @wraps(original)
    def loop(visitor: Any, node: ast.While) -> Any:
        names = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
        arguments = {n: n for n in names & {*visitor.sdfg.arrays} - {*visitor.variables}}
        visitor.variables |= arguments
        result = original(visitor, node)
        for name in arguments:
            del visitor.variables[name]
        return result

    return loop


def passing_over(original: Method) -> Method:
    """Assertions about sizes are passed over, as DaCe passes over those about numbers."""

    @wraps(original)
    def check(resolver: Any, node: ast.Assert) -> Any:
        try:
            return original(resolver, node)
        except TypeError:  # of a relation between symbols
            return None

    return check


def placing(original: Method) -> Method:
    """A function in the subscript of a target is called ahead: `counts[min(k, 9)] += 1`. Every second element
    is written as it is without `+=`."""

    @wraps(original)
    def assign(visitor: Any, node: ast.AugAssign) -> Any:
        target = node.target
        if any(isinstance(n, ast.Slice) and n.step is not None for n in ast.walk(target)):
            plain = _parsed(f"{ast.unparse(target)} = {ast.unparse(target)}", node)
            assert isinstance(plain, ast.Assign)
            plain.value = ast.copy_location(ast.BinOp(plain.value, node.op, node.value), node)
            return visitor.visit(plain)
        if isinstance(target, ast.Subscript) and any(isinstance(n, ast.Call) for n in ast.walk(target.slice)):
            written = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            places = [_held(visitor, at) if isinstance(at, ast.Call) else at for at in written]
            at = ast.copy_location(ast.Tuple(places, ast.Load()), target) if places[1:] else places[0]
            moved = ast.copy_location(ast.Subscript(target.value, at, target.ctx), target)
            node = ast.copy_location(ast.AugAssign(moved, node.op, node.value), node)
        return original(visitor, node)

    return assign


def _held(visitor: Any, value: ast.expr) -> ast.expr:
    """What is computed ahead of a statement, under a name."""
    name = f"held_{value.lineno}_{value.col_offset}"
    target, read = (ast.copy_location(ast.Name(name, to), value) for to in (ast.Store(), ast.Load()))
    visitor.visit(ast.copy_location(ast.Assign([target], value), value))
    return read


def _parsed(text: str, instead: ast.AST) -> ast.stmt:
    """A statement in the place of another."""
    (statement,) = ast.parse(text).body
    for part in ast.walk(statement):
        ast.copy_location(part, instead)
    return statement
