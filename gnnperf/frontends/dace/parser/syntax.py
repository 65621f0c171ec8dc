"""Expressions that DaCe 1.0's parser refuses, said in those that it knows."""

from __future__ import annotations

import ast
from functools import wraps
from typing import Any

import dace
import numpy as np
import sympy
from dace import data
from dace.frontend.common import op_repository
from dace.frontend.python import replacements

from gnnperf.frontends.dace.parser import masks, places
from gnnperf.frontends.dace.parser.kinds import is_integer, is_real
from gnnperf.frontends.dace.parser.slices import Method
from gnnperf.frontends.dace.parser.stores import falls, rising
from gnnperf.frontends.dace.parser.trees import computed_ahead, elements, expression, in_one, parsed_instead


def assigning(original: Method) -> Method:
    """A second name for a number is a number of its own: after `before = now`, DaCe has both be one variable,
    which `now += 1` changes; and of `a, b = b, a` it does one after the other. `y = a if c else b` is two
    statements, and `y[::-1] = x` another. Numbers in a list are an array."""

    @wraps(original)
    def assign(visitor: Any, node: ast.Assign) -> Any:
        targets = [_without_calls(visitor, t) if isinstance(t, ast.Subscript) else t for t in node.targets]
        node = ast.copy_location(ast.Assign(targets, node.value), node)
        if instead := masks.stored_whole(visitor, node) or places.stored(visitor, node):
            return visitor.visit(instead)
        match node:
            case ast.Assign(targets=[ast.Name(id=new)], value=ast.Name() as value):
                if not visitor.defined.get(new):
                    node = ast.copy_location(ast.Assign(node.targets, _as_number(visitor, value)), node)
            case ast.Assign(targets=[ast.Tuple()], value=ast.Tuple(elts=values)):
                numbers = ast.Tuple([_as_number(visitor, value) for value in values], ast.Load())
                node = ast.copy_location(ast.Assign(node.targets, ast.copy_location(numbers, node)), node)
            case ast.Assign(targets=targets, value=ast.IfExp(test=test, body=one, orelse=other)):
                if is_real(visitor, other) and not is_real(visitor, one):  # DaCe takes the type of the first
                    one = ast.copy_location(ast.BinOp(ast.Constant(1.0), ast.Mult(), one), one)
                either, or_else = (ast.copy_location(ast.Assign(targets, v), node) for v in (one, other))
                return visitor.visit(ast.copy_location(ast.If(test, [either], [or_else]), node))
            case ast.Assign(value=ast.List() as numbers) if _is_of_numbers(numbers):
                array = ast.Call(expression("numpy.array"), [numbers], [])
                node = ast.fix_missing_locations(ast.copy_location(ast.Assign(node.targets, array), node))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name()) as target]) if any(
                map(falls, ast.walk(target.slice))
            ):
                node = rising(visitor, node, target)
        return original(visitor, node)

    return assign


def _as_number(visitor: Any, value: ast.expr) -> ast.expr:
    """What a name of a number stands for now, whatever becomes of the name."""
    name = ast.unparse(value)
    held = visitor.sdfg.arrays.get(visitor.variables.get(name, name))
    return (
        ast.copy_location(ast.UnaryOp(ast.UAdd(), value), value) if isinstance(held, data.Scalar) else value
    )


def _is_of_numbers(written: ast.expr) -> bool:
    if isinstance(written, ast.List):
        return bool(written.elts) and all(map(_is_of_numbers, written.elts))
    number = written.operand if isinstance(written, ast.UnaryOp) else written
    return isinstance(number, ast.Constant) and isinstance(number.value, int | float)


def converting(original: Method) -> Method:
    """`int(x[i])`, and types under names of their own, convert. What DaCe lacks of `math` is NumPy's, and so
    is the `sum` of an array."""

    @wraps(original)
    def call(visitor: Any, node: ast.Call, *rest: Any, **more: Any) -> Any:
        if whole := masks.reduced_whole(visitor, node):
            return visitor.visit(whole)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() as inner) as method):  # `x.clip(0, 1).round()`
                method.value = computed_ahead(visitor, inner)
            case ast.Call(func=ast.Attribute(attr="array"), args=[ast.List() as written, *_]):
                node.args[0] = _elements_ahead(visitor, written)
            case ast.Call(func=ast.Name(id="int" | "float" | "bool" as kind), args=[number], keywords=[]):
                names = {n.id for n in ast.walk(number) if isinstance(n, ast.Name)}
                if names & {*visitor.defined, *visitor.sdfg.arrays} - set(map(str, visitor.sdfg.symbols)):
                    _convert(node, {"int": "int64", "float": "float64", "bool": "bool"}[kind])
            case ast.Call(func=ast.Name(id="sum" | "max" | "min" as of), args=[_], keywords=[]):
                axis = [ast.keyword("axis", ast.Constant(0))] if of == "sum" else []
                called = expression(f"numpy.{of}")
                node = ast.copy_location(ast.Call(called, node.args, axis), node)
                ast.fix_missing_locations(node)
            case ast.Call(func=ast.Constant(value=dace.typeclass() as dtype)):
                _convert(node, dtype.to_string())
            case ast.Call(func=ast.Attribute() | ast.Name() as function) if known := _known_function(
                visitor, function
            ):
                node.func = ast.copy_location(known, function)
            case ast.Call(func=ast.Attribute(value=function, attr="at"), args=[array, places, term]):
                if sign := {"numpy.add": "+", "numpy.subtract": "-"}.get(ast.unparse(function)):
                    simple = ast.Name | ast.Constant
                    at, each = (
                        p if isinstance(p, simple) else computed_ahead(visitor, p) for p in (places, term)
                    )
                    return visitor.visit(_at_places(visitor, node, sign, array, at, each))
        return original(visitor, node, *rest, **more)

    return call


def _elements_ahead(visitor: Any, written: ast.List) -> ast.List:
    """Lists whose elements are numbers and names."""
    found: list[ast.expr] = []
    for element in written.elts:
        if isinstance(element, ast.Name) or _is_of_numbers(element):
            found.append(element)
        elif isinstance(element, ast.List):
            found.append(_elements_ahead(visitor, element))
        else:
            found.append(computed_ahead(visitor, element))
    return ast.copy_location(ast.List(found, ast.Load()), written)


def _at_places(
    visitor: Any, node: ast.Call, sign: str, array: ast.expr, places: ast.expr, term: ast.expr
) -> ast.stmt:
    """`np.add.at(array, places, terms)` as the loop that it is."""
    at, held = f"place_{node.lineno}", visitor.defined.get(ast.unparse(term))
    each = f"[{at}]" if getattr(held, "shape", (1,)) != (1,) else ""
    target = f"{ast.unparse(array)}[{ast.unparse(places)}[{at}]]"
    text = f"for {at} in range(len({ast.unparse(places)})):\n    {target} {sign}= {ast.unparse(term)}{each}"
    return parsed_instead(text, node)


def _known_function(visitor: Any, function: ast.Attribute | ast.Name) -> ast.expr | None:
    """In the place of a function that DaCe lacks: the same under NumPy's name; of scipy's, `math`'s."""
    itself = visitor.globals.get(function.id) if isinstance(function, ast.Name) else None
    if isinstance(itself, np.ufunc):
        return expression("math.erf") if itself.__name__ == "erf" else None
    module, _, name = ast.unparse(function).rpartition(".")
    if getattr(itself, "__module__", module) != "math":
        return None
    name = getattr(itself, "__name__", name)
    called = _AS_NUMPY.get(name, name)
    if op_repository.Replacements.get(f"math.{name}") or called not in replacements.ufuncs:
        return None
    return expression(f"numpy.{called}")


_AS_NUMPY = {"pow": "power", "atan2": "arctan2"} | {
    f"a{f}": f"arc{f}" for f in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}


def _convert(node: ast.Call, dtype: str) -> None:
    """Have a call be one of DaCe's conversions."""
    module = ast.copy_location(ast.Name("dace", ast.Load()), node)
    node.func = ast.copy_location(ast.Attribute(module, dtype, ast.Load()), node)


def dividing(original: Method) -> Method:
    """`i / N` of counters and symbols is no integer. Real numbers have `//` and `%`, too, which round down,
    as C's do not. What comes to a number, as `4 * i % 2`, is Python's, not sympy's."""

    @wraps(original)
    def divide(visitor: Any, node: ast.BinOp) -> Any:
        negative = any(isinstance(n, ast.Sub | ast.USub) for n in ast.walk(node.left))
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and (negative or not is_integer(visitor, node)):
            function = "floor_divide" if isinstance(node.op, ast.FloorDiv) else "mod"
            called = ast.Attribute(ast.Name("numpy", ast.Load()), function, ast.Load())
            call = ast.copy_location(ast.Call(called, [node.left, node.right], []), node)
            return visitor._gettype(ast.fix_missing_locations(call))[0][0]
        if isinstance(node.op, ast.Div) and is_integer(visitor, node.left):
            if is_integer(visitor, node.right):
                real = ast.copy_location(ast.BinOp(ast.Constant(1.0), ast.Mult(), node.left), node)
                ast.fix_missing_locations(real)
                node = ast.copy_location(ast.BinOp(real, node.op, node.right), node)
        found = original(visitor, node)
        return int(found) if isinstance(found, sympy.Integer) else found

    return divide


def sizing(original: Method) -> Method:
    """`x.shape[0]` in an expression is a size. Places that functions say, `x[min(i + 1, N - 1)]`, are
    computed ahead; DaCe takes whole axes in their stead."""

    @wraps(original)
    def subscript(visitor: Any, node: ast.Subscript, *rest: Any, **more: Any) -> Any:
        node = _without_calls(visitor, node)
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
                slice=ast.Constant(value=int() as axis),
            ) if (held := visitor.defined.get(name)) is not None:
                return held.shape[axis]
            case ast.Subscript(value=ast.Name(), ctx=ast.Load()) if chosen := places.taken(visitor, node):
                return visitor.visit(computed_ahead(visitor, chosen))
        return original(visitor, node, *rest, **more)

    return subscript


def _without_calls(visitor: Any, part: ast.Subscript) -> ast.Subscript:
    """The part of an array, where places that functions say, or what is made of arrays, are found ahead."""
    axes = elements(part.slice)
    ahead = [_is_called(axis) or places.are_computed(visitor, axis) for axis in axes]
    if not any(ahead):
        return part
    axes = [computed_ahead(visitor, axis) if first else axis for axis, first in zip(axes, ahead, strict=True)]
    at = ast.copy_location(in_one(axes), part)
    return ast.copy_location(ast.Subscript(part.value, at, part.ctx), part)


def _is_called(axis: ast.expr) -> bool:
    """Is the place on an axis what a function gives, of more than numbers?"""
    calls = (n for n in ast.walk(axis) if isinstance(n, ast.Call))
    return not isinstance(axis, ast.Slice) and any(
        isinstance(n, ast.Name | ast.Subscript) for call in calls for arg in call.args for n in ast.walk(arg)
    )


def visit_choice(visitor: Any, node: ast.IfExp) -> Any:
    """A choice inside an expression is made ahead of it."""
    return visitor.visit(computed_ahead(visitor, node))


def comparing(original: Method) -> Method:
    """`a < b < c` is two comparisons, and `a in (1, 2)` is."""

    @wraps(original)
    def compare(visitor: Any, node: ast.Compare) -> Any:
        match node:
            case ast.Compare(
                ops=[(ast.In() | ast.NotIn()) as asked], comparators=[ast.Tuple(elts=[_, *_] as known)]
            ):
                op, join = (ast.Eq(), ast.Or()) if isinstance(asked, ast.In) else (ast.NotEq(), ast.And())
                pairs: list[ast.expr] = [
                    ast.copy_location(ast.Compare(node.left, [op], [k]), node) for k in known
                ]
                return visitor.visit(
                    ast.copy_location(ast.BoolOp(join, pairs), node) if pairs[1:] else pairs[0]
                )
            case ast.Compare(ops=[_]):
                return original(visitor, node)
        sides = [node.left, *node.comparators]
        pairs = [
            ast.copy_location(ast.Compare(left, [op], [right]), node)
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return visitor.visit(ast.copy_location(ast.BoolOp(ast.And(), pairs), node))

    return compare


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
    """A function in the subscript of a target is called ahead: `counts[min(k, 9)] += 1`. Every second
    element, and `x %= y` of real numbers, is written as it is without `+=`."""

    @wraps(original)
    def assign(visitor: Any, node: ast.AugAssign) -> Any:
        target = node.target
        if isinstance(target, ast.Subscript):
            target = _without_calls(visitor, target)
            node = ast.copy_location(ast.AugAssign(target, node.op, node.value), node)
        if instead := masks.stored_whole(visitor, node) or places.stored(visitor, node):
            return visitor.visit(instead)
        stepped = any(isinstance(n, ast.Slice) and n.step is not None for n in ast.walk(target))
        rounds_down = isinstance(node.op, ast.FloorDiv | ast.Mod)
        if stepped or (rounds_down and any(is_real(visitor, side) for side in (target, node.value))):
            plain = parsed_instead(f"{ast.unparse(target)} = {ast.unparse(target)}", node)
            assert isinstance(plain, ast.Assign)
            plain.value = ast.copy_location(ast.BinOp(plain.value, node.op, node.value), node)
            return visitor.visit(plain)
        return original(visitor, node)

    return assign
