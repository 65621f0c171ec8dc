"""Expressions that DaCe 1.0's parser refuses, said in those that it knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Container
from functools import wraps
from typing import Any

import dace
import sympy
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
                if _is_real(visitor, other) and not _is_real(
                    visitor, one
                ):  # DaCe takes the type of the first
                    one = ast.copy_location(ast.BinOp(ast.Constant(1.0), ast.Mult(), one), one)
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
            case ast.Call(func=ast.Attribute(value=function, attr="at"), args=[array, places, term]):
                if sign := {"numpy.add": "+", "numpy.subtract": "-"}.get(ast.unparse(function)):
                    simple = ast.Name | ast.Constant
                    at, each = (p if isinstance(p, simple) else _held(visitor, p) for p in (places, term))
                    return visitor.visit(_at_places(visitor, node, sign, array, at, each))
        return original(visitor, node, *rest, **more)

    return call


def _at_places(
    visitor: Any, node: ast.Call, sign: str, array: ast.expr, places: ast.expr, term: ast.expr
) -> ast.stmt:
    """`np.add.at(array, places, terms)` as the loop that it is."""
    at, held = f"place_{node.lineno}", visitor.defined.get(ast.unparse(term))
    each = f"[{at}]" if getattr(held, "shape", (1,)) != (1,) else ""
    target = f"{ast.unparse(array)}[{ast.unparse(places)}[{at}]]"
    text = f"for {at} in range(len({ast.unparse(places)})):\n    {target} {sign}= {ast.unparse(term)}{each}"
    return _parsed(text, node)


def _convert(node: ast.Call, dtype: str) -> None:
    """Have a call be one of DaCe's conversions."""
    module = ast.copy_location(ast.Name("dace", ast.Load()), node)
    node.func = ast.copy_location(ast.Attribute(module, dtype, ast.Load()), node)


def dividing(original: Method) -> Method:
    """`i / N` of counters and symbols is no integer. Real numbers have `//` and `%`, too, which round down,
    as C's do not."""

    @wraps(original)
    def divide(visitor: Any, node: ast.BinOp) -> Any:
        negative = any(isinstance(n, ast.Sub | ast.USub) for n in ast.walk(node.left))
        if isinstance(node.op, ast.FloorDiv | ast.Mod) and (negative or not _is_integer(visitor, node)):
            function = "floor_divide" if isinstance(node.op, ast.FloorDiv) else "mod"
            called = ast.Attribute(ast.Name("numpy", ast.Load()), function, ast.Load())
            call = ast.copy_location(ast.Call(called, [node.left, node.right], []), node)
            return visitor._gettype(ast.fix_missing_locations(call))[0][0]
        if isinstance(node.op, ast.Div) and _is_integer(visitor, node.left):
            if _is_integer(visitor, node.right):
                real = ast.copy_location(ast.BinOp(ast.Constant(1.0), ast.Mult(), node.left), node)
                ast.fix_missing_locations(real)
                node = ast.copy_location(ast.BinOp(real, node.op, node.right), node)
        return original(visitor, node)

    return divide


_WHOLE = re.compile(r"(.*\.)?(u?int\d*|len|bool|arg\w+|count_nonzero)")
"""Functions whose results are integers, whatever they are of; and arguments that say so."""
_REAL = re.compile(r"(.*\.)?(float\d*|sqrt|exp|log\w*|sin|cos|tanh?|mean|average|std|var|zeros|ones|empty)")


def _is_real(visitor: Any, node: ast.expr, reals: Container[str] = ()) -> bool:
    """Is it computed from a real number, or several? `reals` are variables that hold some."""
    match node:
        case ast.Constant(value=float()):
            return True
        case ast.Name(id=name):
            name = visitor.variables.get(name, name)
            held = visitor.sdfg.arrays.get(name, visitor.scope_arrays.get(name))
            return name in reals or getattr(held, "dtype", None) in (dace.float32, dace.float64)
        case ast.BinOp(left=left, op=op, right=right):
            return isinstance(op, ast.Div) or any(_is_real(visitor, side, reals) for side in (left, right))
        case ast.IfExp(body=one, orelse=other):
            return any(_is_real(visitor, side, reals) for side in (one, other))
        case ast.UnaryOp(operand=of) | ast.Subscript(value=of) | ast.Attribute(value=of):
            return not isinstance(getattr(node, "op", None), ast.Not) and _is_real(visitor, of, reals)
        case ast.Call(func=function, args=arguments):
            said = (function, *arguments[1:], *(k.value for k in node.keywords))
            if any(_WHOLE.fullmatch(ast.unparse(part)) for part in said):
                return False
            real = _REAL.fullmatch(ast.unparse(function)) is not None
            return real or any(_is_real(visitor, part, reals) for part in (function, *arguments))
    return False


def typing(original: Method) -> Method:
    """A variable that begins as an integer and becomes a real number, `total = 0` before `total += x[i]`, is
    real from the start: DaCe gives it the type of what it holds first."""

    @wraps(original)
    def parse(visitor: Any, program: ast.FunctionDef, *rest: Any, **more: Any) -> Any:
        _Left().visit(program)
        _rename_counters(program)
        given = [pair for node in ast.walk(program) for pair in _assigned(node)]
        values: dict[str, list[ast.expr]] = {}
        for name, value in given:
            values.setdefault(name, []).append(value)
        reals: set[str] = set()
        while found := {
            n for n in values.keys() - reals if any(_is_real(visitor, v, reals) for v in values[n])
        }:
            reals |= found
        for name, value in given:
            start = value.operand if isinstance(value, ast.UnaryOp) else value
            if name in reals and isinstance(start, ast.Constant) and type(start.value) is int:
                start.value = float(start.value)
        return original(visitor, program, *rest, **more)

    return parse


class _Left(ast.NodeTransformer):
    """Loops that are left by `if c: break` end by their test: `for i in range(n)` is

        turn, left = 0, 0
        while turn < n and left == 0:
            i = turn
            turn += 1
            ...
            if c: left = 1
            else: ...

    which is a loop to what follows, where DaCe's states of a `break` are none."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        match node:
            case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=ends)):
                first, last, step = _range(ends)
            case _:
                return node
        named = {n.id for end in ends for n in ast.walk(end) if isinstance(n, ast.Name)}
        assigned = {name for part in ast.walk(node) for name, _ in _assigned(part)}
        turn = f"turn_{node.lineno}"
        if not step or node.orelse or named & assigned or (body := self._body(node)) is None:
            return node
        trips = f"(({last}) - ({first}) + {step - 1}) // {step}" if step > 1 else f"({last}) - ({first})"
        if step < 0:
            trips = f"(({first}) - ({last}) + {-step - 1}) // {-step}"
        lines = [f"{counter} = ({first}) + {step} * {turn}", f"{turn} += 1"]
        return self._loop(node, f"{turn} < {trips}", lines, body, f"{turn} = 0")

    def visit_While(self, node: ast.While) -> Any:
        self.generic_visit(node)
        body = None if node.orelse else self._body(node)
        return node if body is None else self._loop(node, ast.unparse(node.test), [], body)

    def _loop(
        self, node: ast.stmt, test: str, lines: list[str], body: list[ast.stmt], *before: str
    ) -> list[ast.stmt]:
        left = f"left_{node.lineno}"
        made = _parsed(f"while ({test}) and {left} == 0:\n    pass", node)
        assert isinstance(made, ast.While)
        made.body = [*(_parsed(line, node) for line in lines), *body]
        return [*(_parsed(line, node) for line in (*before, f"{left} = 0")), made]

    def _body(self, node: ast.For | ast.While) -> list[ast.stmt] | None:
        """What is done before and instead of each break; None where there is none, or one of another form."""
        body = self._instead(node.body, f"left_{node.lineno}")
        return body if body != node.body and not any(map(_breaks, body)) else None

    def _instead(self, statements: list[ast.stmt], left: str) -> list[ast.stmt]:
        for i, statement in enumerate(statements):
            match statement:
                case ast.If(test=test, body=[*before, ast.Break() as last], orelse=[]):
                    rest = self._instead(statements[i + 1 :], left)
                    chosen = ast.If(test, [*before, _parsed(f"{left} = 1", last)], rest)
                    return [*statements[:i], ast.copy_location(chosen, statement)]
        return statements


def _breaks(statement: ast.AST) -> bool:
    """Does a statement leave the loop that it is in?"""
    if isinstance(statement, ast.For | ast.While | ast.FunctionDef):
        return False
    return isinstance(statement, ast.Break) or any(map(_breaks, ast.iter_child_nodes(statement)))


def _range(ends: list[ast.expr]) -> tuple[str, str, int]:
    """First, last and step of a `range`; a step of zero where it is no number."""
    match [*map(ast.unparse, ends)]:
        case [last]:
            return "0", last, 1
        case [first, last]:
            return first, last, 1
        case [first, last, step] if step.lstrip("-").isdigit():
            return first, last, int(step)
    return "0", "0", 0


def _rename_counters(program: ast.FunctionDef) -> None:
    """In place: other names for counters of loops that are variables elsewhere, of which DaCe makes a symbol
    and an array of one name. One that is read before it is set may be the counter's last value: it stays."""
    loops = [n for n in ast.walk(program) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)]
    assigned = {name for node in ast.walk(program) for name, _ in _assigned(node)}
    for name in assigned & {ast.unparse(loop.target) for loop in loops}:
        own = [(n, loop) for loop in loops if ast.unparse(loop.target) == name for n in ast.walk(loop)]
        inside = {id(n) for n, _ in own}
        outside = [
            (n.lineno, isinstance(n.ctx, ast.Store))  # what a line reads comes before what it sets
            for n in ast.walk(program)
            if isinstance(n, ast.Name) and n.id == name and id(n) not in inside
        ]
        if outside and min(outside)[1]:
            for node, loop in own:
                if isinstance(node, ast.Name) and node.id == name:
                    node.id = f"{name}_{loop.lineno}"


def _assigned(node: ast.AST) -> list[tuple[str, ast.expr]]:
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


def sizing(original: Method) -> Method:
    """`x.shape[0]` in an expression is a size."""

    @wraps(original)
    def subscript(visitor: Any, node: ast.Subscript, *rest: Any, **more: Any) -> Any:
        match node:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
                slice=ast.Constant(value=int() as axis),
            ) if (held := visitor.defined.get(name)) is not None:
                return held.shape[axis]
        return original(visitor, node, *rest, **more)

    return subscript


def visit_choice(visitor: Any, node: ast.IfExp) -> Any:
    """A choice inside an expression is made ahead of it."""
    return visitor.visit(_held(visitor, node))


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
                parts = [a if isinstance(a, ast.Name) else _held(visitor, a) for a in arrays]
                taken = [*zip(values, parts, strict=True)]
            case ast.For(iter=ast.Name(id=name)) if getattr(visitor.defined.get(name), "shape", (1,)) != (1,):
                taken = [(node.target, node.iter)]
            case _:
                return original(visitor, node)
        place = ast.unparse(counter)
        takes = [f"{ast.unparse(value)} = {ast.unparse(array)}[{place}]" for value, array in taken]
        shortest = _shortest(visitor, [ast.unparse(array) for _, array in taken])
        lines = [f"for {place} in range(len({shortest})):", *takes]
        made = _parsed("\n    ".join(lines), node)
        assert isinstance(made, ast.For)
        made.body += node.body
        return original(visitor, made)

    return loop


def _shortest(visitor: Any, arrays: list[str]) -> str:
    if len(arrays) == 1:
        return arrays[0]
    lengths = [visitor.defined[name].shape[0] for name in arrays]
    if (least := sympy.Min(*lengths)) not in lengths:
        sizes = " and ".join(map(str, lengths))
        raise NotImplementedError(f"zip of arrays of {sizes} elements: which of them ends first?")
    return arrays[lengths.index(least)]


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
    """A function in the subscript of a target is called ahead: `counts[min(k, 9)] += 1`. Every second
    element, and `x %= y` of real numbers, is written as it is without `+=`."""

    @wraps(original)
    def assign(visitor: Any, node: ast.AugAssign) -> Any:
        target = node.target
        stepped = any(isinstance(n, ast.Slice) and n.step is not None for n in ast.walk(target))
        whole = isinstance(node.op, ast.FloorDiv | ast.Mod)
        if stepped or (whole and any(_is_real(visitor, side) for side in (target, node.value))):
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
