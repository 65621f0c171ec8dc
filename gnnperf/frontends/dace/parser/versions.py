"""Names that stand for one array after another, `x = relu(x @ w)`: DaCe 1.0 stores what comes later in the
first one, also where that is an argument, or refuses."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping

from gnnperf.frontends.dace.parser.trees import (
    assigned_in,
    elements,
    expression,
    names_in,
    stored_in,
    times_assigned,
)


def number_versions(function: ast.FunctionDef) -> None:
    """In place: arrays that a program assigns to a name one after the other have names of their own. An
    argument, or a second name for one, that a loop or a branch assigns to is copied first."""
    arguments = {a.arg for a in function.args.args if isinstance(a.annotation, ast.Subscript)}
    arrays = arguments | {ast.unparse(n.value) for n in ast.walk(function) if isinstance(n, ast.Subscript)}
    for statement in function.body:
        arrays |= {name for name, value in _assigned(statement) if arrays & {*_whole(value)}}
    _copy_ahead(function, arguments, arrays)
    given = {name: name for name in arguments}
    taken = {*names_in(function), *arguments}
    for statement in function.body:
        new = {name: name for name, _ in _assigned(statement)}
        for name in (new.keys() & given.keys()) & arrays:
            new[name] = next(n for k in itertools.count(2) if (n := f"{name}_{k}") not in taken)
            taken.add(new[name])
        for part in (n for n in ast.walk(statement) if isinstance(n, ast.Name)):
            names = new if part.id in new and isinstance(part.ctx, ast.Store) else given
            part.id = names.get(part.id, part.id)
        given |= new
    ast.fix_missing_locations(function)


def _copy_ahead(function: ast.FunctionDef, arguments: set[str], arrays: set[str]) -> None:
    """In place: `x = x.copy()` of arguments, `u = x.copy()` of second names, that are assigned to inside."""
    times = times_assigned(function)
    stored = {name for statement in function.body for name in stored_in(statement)}
    ranks = {a.arg: _rank(a.annotation) for a in function.args.args}
    again = {name for name in times if times[name] > 1 and name not in stored}
    held = {
        name
        for statement in function.body
        for name, value in _assigned(statement)
        if name in again and _is_array(value, arrays, ranks)
    }
    for part in ast.walk(function):
        match part:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in held:
                is_first = part in function.body and _is_array(value, arrays, ranks)
                if is_first or isinstance(value, ast.Name):
                    copy = expression(f"{ast.unparse(value)}.copy()")
                    part.value = ast.copy_location(copy, value)
    copied = [name for name in sorted(arguments) if _is_assigned_inside(function, name)]
    ahead = [ast.parse(f"{name} = {name}.copy()").body[0] for name in copied]
    for statement in ahead:
        ast.copy_location(statement, function)
    function.body = [*ahead, *function.body]


def _rank(annotation: ast.expr | None) -> int:
    """Axes of an annotated array."""
    if not isinstance(annotation, ast.Subscript):
        return 0
    return len(annotation.slice.elts) if isinstance(annotation.slice, ast.Tuple) else 1


def _is_array(value: ast.expr, arrays: set[str], ranks: Mapping[str, int]) -> bool:
    """Is it an array, or a part of one that has axes, by its name?"""
    match value:
        case ast.Name(id=name):
            return name in arrays
        case ast.Subscript(value=ast.Name(id=name), slice=places):
            axes = elements(places)
            return any(isinstance(axis, ast.Slice) for axis in axes) or len(axes) < ranks.get(name, 0)
    return False


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """What a statement, not one inside of it, assigns to names."""
    if isinstance(statement, ast.Assign):
        yield from assigned_in(statement)


def _whole(value: ast.expr) -> Iterator[str]:
    """Names in an expression that no subscript takes a part of."""
    parts = {id(n.value) for n in ast.walk(value) if isinstance(n, ast.Subscript)}
    yield from (n.id for n in ast.walk(value) if isinstance(n, ast.Name) and id(n) not in parts)


def _is_assigned_inside(function: ast.FunctionDef, name: str) -> bool:
    """Does a loop or a branch assign to a name, which was not assigned to nor stored in before?"""
    for statement in function.body:
        if name in dict(_assigned(statement)) or name in stored_in(statement):
            return False
        if any(name in dict(_assigned(s)) for s in ast.walk(statement) if isinstance(s, ast.stmt)):
            return True
    return False
