"""Lists of numbers that a program finds outside, `WEIGHTS[k]`, of which DaCe 1.0 takes no element that a
counter chooses."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnperf.frontends.dace.parser.trees import names_in, own_names


def bring_lists_in(function: ast.FunctionDef, outside: Mapping[str, Any]) -> None:
    """In place: they are lists of the program's own.

    outside: global values by name.
    """
    own = own_names(function)
    chosen = {
        part.value.id
        for part in ast.walk(function)
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name) and names_in(part.slice)
    }
    numbers = {name: outside[name] for name in sorted(chosen - own) if _is_of_numbers(outside.get(name))}
    texts = [f"{name} = {np.asarray(value).tolist()!r}" for name, value in numbers.items()]
    function.body = [*ast.parse("\n".join(texts)).body, *function.body]
    for statement in function.body[: len(numbers)]:
        for part in ast.walk(statement):
            ast.copy_location(part, function)


def _is_of_numbers(value: Any) -> bool:
    if not isinstance(value, list | tuple):
        return False
    numbers = np.asarray(value, dtype=object).ravel()  # of lists of different lengths the lists
    return numbers.size > 0 and all(type(number) in (int, float) for number in numbers)
