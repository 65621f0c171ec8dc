"""Loops of Python that DaCe 1.0's parser refuses or takes for others, said in those that it knows."""

from __future__ import annotations

import ast
from functools import wraps
from typing import Any

import sympy

from gnnperf.frontends.dace.parser.slices import Method
from gnnperf.frontends.dace.parser.trees import assigned_in, computed_ahead, parsed_instead


def counting(original: Method) -> Method:
    """Loops over elements, `for value in x`, and with `enumerate` or `zip`, count and take elements."""

    @wraps(original)
    def loop(visitor: Any, node: ast.For) -> Any:
        counter: ast.expr = ast.Name(f"place_{node.lineno}", ast.Store())
        match node:
            case ast.For(
                target=ast.Tuple(elts=[counted, ast.Tuple(elts=values)]),
                iter=ast.Call(
                    func=ast.Name(id="enumerate"), args=[ast.Call(func=ast.Name(id="zip"), args=arrays)]
                ),
            ):
                counter, taken = counted, _pairs(visitor, values, arrays)
            case ast.For(
                target=ast.Tuple(elts=[counted, value]),
                iter=ast.Call(func=ast.Name(id="enumerate"), args=[array], keywords=[]),
            ):
                counter, taken = counted, [(value, array)]
            case ast.For(target=ast.Tuple(elts=values), iter=ast.Call(func=ast.Name(id="zip"), args=arrays)):
                taken = _pairs(visitor, values, arrays)
            case ast.For(iter=ast.Name(id=name)) if getattr(visitor.defined.get(name), "shape", (1,)) != (1,):
                taken = [(node.target, node.iter)]
            case _:
                return original(visitor, node)
        place = ast.unparse(counter)
        takes = [f"{ast.unparse(value)} = {ast.unparse(array)}[{place}]" for value, array in taken]
        shortest = _shortest(visitor, [ast.unparse(array) for _, array in taken])
        lines = [f"for {place} in range(len({shortest})):", *takes]
        made = parsed_instead("\n    ".join(lines), node)
        assert isinstance(made, ast.For)
        made.body += node.body
        return original(visitor, made)

    return loop


def _pairs(visitor: Any, values: list[ast.expr], arrays: list[ast.expr]) -> list[tuple[ast.expr, ast.expr]]:
    """What is taken at every turn, and of which array."""
    parts = [a if isinstance(a, ast.Name) else computed_ahead(visitor, a) for a in arrays]
    return [*zip(values, parts, strict=True)]


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


class LeftByBreak(ast.NodeTransformer):
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
        assigned = {name for part in ast.walk(node) for name, _ in assigned_in(part)}
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
        made = parsed_instead(f"while ({test}) and {left} == 0:\n    pass", node)
        assert isinstance(made, ast.While)
        made.body = [*(parsed_instead(line, node) for line in lines), *body]
        return [*(parsed_instead(line, node) for line in (*before, f"{left} = 0")), made]

    def _body(self, node: ast.For | ast.While) -> list[ast.stmt] | None:
        """What is done before and instead of each break; None where there is none, or one of another form."""
        body = self._instead(node.body, f"left_{node.lineno}")
        return body if body != node.body and not any(map(_breaks, body)) else None

    def _instead(self, statements: list[ast.stmt], left: str) -> list[ast.stmt]:
        for i, statement in enumerate(statements):
            match statement:
                case ast.If(test=test, body=[*before, ast.Break() as last], orelse=[]):
                    rest = self._instead(statements[i + 1 :], left)
                    chosen = ast.If(test, [*before, parsed_instead(f"{left} = 1", last)], rest)
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


def rename_counters(program: ast.FunctionDef) -> None:
    """In place: other names for counters of loops that are variables elsewhere, of which DaCe makes a symbol
    and an array of one name. One that is read before it is set may be the counter's last value: it stays."""
    loops = [n for n in ast.walk(program) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)]
    assigned = {name for node in ast.walk(program) for name, _ in assigned_in(node)}
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
