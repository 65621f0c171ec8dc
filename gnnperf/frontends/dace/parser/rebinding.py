"""Names of arrays that change places, `u, v = v, u`: DaCe 1.0 makes copies that overwrite each other."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import sympy

from gnnperf.frontends.dace.parser.trees import expression, filled, names_given, names_in

MOST_TURNS = 4
"""Of a loop, after which names stand for what they did before."""

Names = Mapping[str, str]
"""Of arrays: by what a program calls them at some place, where that is not what they are called at first."""
Block = list[ast.stmt]


def follow_names(function: ast.FunctionDef, outside: Mapping[str, Any]) -> None:
    """In place: every name stands for one array. A loop after whose turns names stand for other arrays does
    several turns at once, and those that are left behind it.

    outside: global values by name.
    Raises NotImplementedError where conditions decide what names stand for, or a size that is a symbol.
    """
    arrays = {ast.unparse(n.value) for n in ast.walk(function) if isinstance(n, ast.Subscript)}
    renamings = [dict(_renamed(s)) for s in ast.walk(function) if isinstance(s, ast.Assign)]
    swaps = [new for new in renamings if len(new) > 1 and new.keys() == {*new.values()} <= arrays]
    loops = (n for n in ast.walk(function) if isinstance(n, ast.For | ast.While))
    turned = [dict(_renamed(s)) for loop in loops for s in ast.walk(loop) if isinstance(s, ast.Assign)]
    if not swaps and not any(arrays & {*new.values()} for new in turned):
        return
    used = Counter(names_in(function))
    used.subtract(name for new in renamings for pair in new.items() for name in pair)
    try:
        following = _Following(arrays, {n for n in used if used[n] > 0}, outside)
        function.body, _ = following.block(copy.deepcopy(function.body), {})
    except _Unclear as unclear:
        if swaps:
            raise NotImplementedError(f"line {unclear}: names of arrays that change places there") from None
    ast.fix_missing_locations(function)


class _Unclear(Exception):
    """What a name stands for is decided when the program runs."""


def _renamed(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """New names and the old ones that they are taken from, of a statement that does nothing else."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=new)], value=ast.Name(id=old)):
            yield new, old
        case ast.Assign(targets=[ast.Tuple(elts=new)], value=ast.Tuple(elts=old)):
            if all(isinstance(n, ast.Name) for n in (*new, *old)):
                yield from zip(map(ast.unparse, new), map(ast.unparse, old), strict=False)


@dataclass(frozen=True)
class _Following:
    arrays: Set[str]
    used: Set[str]
    """Names that are not only given to others."""
    outside: Mapping[str, Any]

    def block(self, statements: Block, names: Names) -> tuple[Block, Names | None]:
        """Statements in which every name stands for one array; the names behind, where they are known."""
        found: Block = []
        for at, statement in enumerate(statements):
            new = dict(_renamed(statement))
            if new and all(old in self.arrays or old in names for old in new.values()):
                names = {**names, **{name: names.get(old, old) for name, old in new.items()}}
                continue
            match statement:
                case ast.For():
                    turns, before = self._turns(statement, names)
                    if len(turns) > 1:
                        rest, behind = self._several(statement, turns, before, statements[at + 1 :])
                        return found + rest, behind
                    _call(names, statement.target, statement.iter)
                    statement.body = turns[0]
                case ast.If() | ast.While():
                    _call(names, statement.test)
                    statement.body, after = self.block(statement.body, names)
                    statement.orelse, other = self.block(statement.orelse, names)
                    if after is None or other is None or self._live(after) != self._live(other):
                        raise _Unclear(statement.lineno)
                    names = after
                case _:
                    live = self._live(names)
                    given = isinstance(statement, ast.Assign | ast.AnnAssign)
                    if given and not {*live, *live.values()}.isdisjoint(names_given(statement)):
                        raise _Unclear(statement.lineno)
                    _call(names, statement)
            found.append(statement)
        return found, names

    def _turns(self, loop: ast.For, names: Names) -> tuple[list[Block], list[Names]]:
        """Bodies of the turns until names stand for what they did before; the names before each."""
        turns, before = list[Block](), [names]
        while True:
            body, after = self.block(copy.deepcopy(loop.body), before[-1])
            turns.append(body)
            if after is not None and self._live(after) == self._live(names):
                return turns, before
            left = any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(loop))
            if after is None or left or len(turns) == MOST_TURNS:
                raise _Unclear(loop.lineno)
            before.append(after)

    def _several(
        self, loop: ast.For, turns: list[Block], before: list[Names], rest: Block
    ) -> tuple[Block, Names | None]:
        """A loop of several turns each; those that are left, and the rest, by how many are."""
        match loop:
            case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=[last])):
                first = "0"
            case ast.For(
                target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=[begin, last])
            ):
                first = ast.unparse(begin)
            case _:
                raise _Unclear(loop.lineno)
        count, together = f"(({ast.unparse(last)}) - ({first}))", len(turns)
        done = f"{count} // {together}"
        body = [
            statement
            for n, turn in enumerate(turns)
            for statement in _at(turn, counter, f"({first}) + {together} * {counter} + {n}")
        ]
        found: Block = [ast.For(ast.Name(counter, ast.Store()), expression(f"range({done})"), body, [])]
        ways, behind = list[Block](), list[Names | None]()
        for left in range(together):
            last_turns = [
                statement
                for n, turn in enumerate(turns[:left])
                for statement in _at(turn, counter, f"({first}) + {together} * ({done}) + {n}")
            ]
            then, names = self.block(copy.deepcopy(rest), before[left])
            ways.append([*last_turns, *then] or [ast.Pass()])
            behind.append(names)
        values = {name: self.outside.get(name) for name in names_in(expression(count))}
        if any(isinstance(value, sympy.Basic) for value in values.values()):
            raise _Unclear(loop.lineno)
        if all(isinstance(value, int) for value in values.values()):
            left = int(sympy.sympify(count, values)) % together
            chosen, names = ways[left], behind[left]
        else:
            chosen, names = ways[-1], behind[-1]
            for left in reversed(range(together - 1)):
                chosen = [ast.If(expression(f"{count} % {together} == {left}"), ways[left], chosen)]
            if any(n is None or names is None or self._live(n) != self._live(names) for n in behind):
                names = None
        for statement in (*found, *chosen):
            ast.copy_location(statement, loop)
        return found + chosen, names

    def _live(self, names: Names) -> Names:
        return {name: old for name, old in names.items() if name != old and name in self.used}


def _call(names: Names, *nodes: ast.AST) -> None:
    """In place: arrays by what they are called at first."""
    for name in (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)):
        name.id = names.get(name.id, name.id)


def _at(turn: Block, counter: str, value: str) -> Block:
    """A turn at one value of the counter."""
    return [filled(statement, {counter: expression(value)}) for statement in turn]
