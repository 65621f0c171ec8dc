"""Loops of a few turns whose counter decides from which end slices count: `x[1 + k : -1 + k or None]` ends
before the last element in one turn and at it in another, which DaCe 1.0 takes for one subset."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from gnnperf.frontends.dace.parser.trees import expression, filled, names_given, names_in

MOST_TURNS = 8

Block = list[ast.stmt]


def write_turns_out(function: ast.FunctionDef) -> None:
    """In place: such loops become their turns, one after another."""
    function.body = _written_out(function.body, set())
    ast.fix_missing_locations(function)


def _written_out(block: Block, elsewhere: set[str]) -> Block:
    """elsewhere: names that are used outside of the block, too."""
    own = _made_in_loops(block) - elsewhere
    found: Block = []
    for statement in block:
        turns = _turns(statement, own) or []
        before = _counting_from_the_end([statement])
        if any(_counting_from_the_end(turn) - before for turn in turns):
            everywhere = elsewhere | {n for s in block for n in names_in(s)}
            for turn in turns:
                found += _written_out(turn, everywhere)
            continue
        for name in ("body", "orelse"):
            if inner := getattr(statement, name, None):
                setattr(statement, name, _written_out(inner, elsewhere | {*names_in(statement)}))
        found.append(statement)
    return found


def _turns(loop: ast.stmt, own: set[str]) -> list[Block] | None:
    """What a loop does in each of its turns, where the names `own` get another ending; None where turns are
    not known, or too many."""
    values: Sequence[int] | None
    match loop:
        case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=ends)):
            numbers = [*map(_number, ends)]
            values = range(*numbers) if _are_whole(numbers) and numbers[2:] != [0] else None
        case ast.For(target=ast.Name(id=counter), iter=ast.Tuple(elts=elts)):
            numbers = [*map(_number, elts)]
            values = numbers if _are_whole(numbers) else None
        case _:
            return None
    left = any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(loop))
    inside = ast.Module(loop.body, [])
    if values is None or left or loop.orelse or counter in names_given(inside) or len(values) > MOST_TURNS:
        return None
    return [
        _with_numbers(
            [filled(s, {name: ast.Name(f"{name}_{loop.lineno}_{n}") for name in own}) for s in loop.body],
            {counter: value},
        )
        for n, value in enumerate(values)
    ]


def _made_in_loops(block: Block) -> set[str]:
    """Names that the loops of a block assign to in every turn before they read them, and that nothing else
    of it uses."""
    made = Counter[str]()
    for loop in (s for s in block if isinstance(s, ast.For)):
        seen, inside = set[str](), Counter(names_in(loop))
        for statement in _one_by_one(loop.body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if name not in seen and name not in names_in(value):
                        made[name] += inside[name]
            seen.update(names_in(statement))
    uses = Counter(n for s in block for n in names_in(s))
    return {name for name in made if made[name] == uses[name]}


def _one_by_one(block: Block) -> Iterator[ast.stmt]:
    """Statements, those in loops too."""
    for statement in block:
        if isinstance(statement, ast.For):
            yield from _one_by_one(statement.body)
        else:
            yield statement


def _with_numbers(block: Block, numbers: dict[str, Any]) -> Block:
    """Statements with numbers in the place of names that are known, and of those that follow from them."""
    found: Block = []
    for statement in block:
        known = {name: expression(repr(number)) for name, number in numbers.items()}
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                statement.value = filled(value, known)
                numbers.pop(name, None)
                if (number := _number(statement.value)) is not _UNKNOWN:
                    numbers[name] = number
                    statement.value = ast.copy_location(expression(repr(number)), value)
            case _:
                for name in names_given(statement):
                    known.pop(name, None)
                    numbers.pop(name, None)
                statement = filled(statement, known)
        found.append(_Ends().visit(statement))
    return found


class _Ends(ast.NodeTransformer):
    """Ends of slices that are known as numbers, or as none."""

    def visit_Slice(self, node: ast.Slice) -> ast.Slice:
        self.generic_visit(node)
        node.lower, node.upper = (_end(end) for end in (node.lower, node.upper))
        return node


def _end(written: ast.expr | None) -> ast.expr | None:
    if written is None or (number := _number(written)) is _UNKNOWN:
        return written
    return None if number is None else ast.copy_location(expression(repr(number)), written)


def _counting_from_the_end(block: Block) -> Counter[str]:
    """Slices that begin or end a number of elements before the end."""
    slices = (n for statement in block for n in ast.walk(statement) if isinstance(n, ast.Slice))
    return Counter(
        ast.unparse(s) for s in slices
        if any(e is not None and type(n := _number(e)) is int and n < 0 for e in (s.lower, s.upper))
    )  # fmt: skip


_UNKNOWN = object()


def _number(written: ast.expr) -> Any:
    """What an expression of numbers, and of None, is; `_UNKNOWN` of others."""
    if names_in(written) or any(not isinstance(n, _OF_NUMBERS) for n in ast.walk(written)):
        return _UNKNOWN
    try:
        value = eval(compile(ast.fix_missing_locations(ast.Expression(written)), "", "eval"), {})
    except (TypeError, ArithmeticError, ValueError):
        return _UNKNOWN
    return value if value is None or type(value) is int else _UNKNOWN


_OF_NUMBERS = (
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip


def _are_whole(numbers: list[Any]) -> bool:
    return all(type(n) is int for n in numbers)
