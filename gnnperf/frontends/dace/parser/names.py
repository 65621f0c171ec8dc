"""Names that stand for one part of an array after another, which DaCe 1.0's parser refuses."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from dace import data

from gnnperf.frontends.dace.parser.trees import assigned_in, elements


def tell_parts_apart(visitor: Any, program: ast.FunctionDef) -> None:
    """In place: `t = x[:, 0]; ...; t = x[:, 1]`, where DaCe has t be one part for good, with a name for each.
    Where a branch or a turn of a loop decides which of them is read, the name stays, and DaCe refuses it."""
    parts = {
        name
        for node in ast.walk(program)
        for name, value in assigned_in(node)
        if _is_part(value, visitor.scope_arrays)
    }
    runs = _Runs(program)
    taken = {n.id for n in ast.walk(program) if isinstance(n, ast.Name)} | {*visitor.globals}
    for name in sorted(parts & runs.of.keys() - runs.unclear):
        for run in runs.of[name][1:]:
            other = data.find_new_name(name, taken)
            taken.add(other)
            for node in run:
                node.id = other


def _is_part(value: ast.expr, arrays: Mapping[str, Any]) -> bool:
    """Is it a part of an array that has axes? `x[0]` of an array that is not known is none."""
    if not isinstance(value, ast.Subscript):
        return False
    axes = elements(value.slice)
    array = arrays.get(value.value.id) if isinstance(value.value, ast.Name) else None
    return any(isinstance(a, ast.Slice) for a in axes) or len(axes) < len(getattr(array, "shape", ()))


class _Runs:
    """What names stand for in a program."""

    def __init__(self, program: ast.FunctionDef) -> None:
        self.of: dict[str, list[list[ast.Name]]] = {}
        """By name, of each assignment: where the name stands for what is assigned, the target first."""
        self.unclear: set[str] = set()
        """Names that stand somewhere for what no assignment before, in a block around, alone decides."""
        self._changed = {id(n.target) for n in ast.walk(program) if isinstance(n, ast.AugAssign)}
        self._block(program.body, {})

    def _block(self, statements: list[ast.stmt], known: dict[str, list[ast.Name]]) -> None:
        for statement in statements:
            blocks = [b for part in ("body", "orelse") if isinstance(b := getattr(statement, part, 0), list)]
            inner = {id(n) for block in blocks for s in block for n in ast.walk(s)}
            names = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
            given = names if isinstance(statement, ast.Assign) else []
            given = [name for name in given if self._is_given(name)]
            for name in names:
                if id(name) in inner or name in given:
                    continue
                if name.id in known and not self._is_given(name):
                    known[name.id].append(name)
                else:
                    self.unclear.add(name.id)
            for name in given:
                known[name.id] = [name]
                self.of.setdefault(name.id, []).append(known[name.id])
            lost = {name.id for name in names if id(name) in inner and self._is_given(name)}
            known = {name: run for name, run in known.items() if name not in lost}
            for block in blocks:
                self._block(block, dict(known))

    def _is_given(self, name: ast.Name) -> bool:
        """Does it stand for something else from here on? Not where `+=` changes that."""
        return isinstance(name.ctx, ast.Store) and id(name) not in self._changed
