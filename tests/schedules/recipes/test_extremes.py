"""Minima and maxima: of nothing, they are infinite."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
from nests.examples import accumulate, array, assign, load, loop, nest
from schedules.recipes.running import build, call

from gnnperf.errors import NotApplicable
from gnnperf.nests import normalise
from gnnperf.schedules.recipes import DEFAULTS, CppFunction, apply, emit


def test_the_smallest_of_infinite_numbers_is_infinite(tmp_path: Path) -> None:
    body = accumulate(load("y", "i"), load("A", "i", "j"), "min")
    program = normalise(
        nest(
            "smallest", [array("A", 5, 37), array("y", 5)],
            loop("i", 5, assign(load("y", "i"), float("inf")), loop("j", 37, body)),
        )
    )  # fmt: skip
    functions: list[CppFunction] = []
    for number, recipe in enumerate(DEFAULTS):
        with suppress(NotApplicable):
            functions.append(emit(apply(recipe, program), f"smallest_{number}"))
    library = build(functions, tmp_path)
    memory = {"A": np.full(5 * 37, np.inf), "y": np.zeros(5)}
    memory["A"][37 + 3] = -2.0
    for function in functions:
        found = call(library, function, program, memory)
        assert found["y"].tolist() == [np.inf, -2.0, np.inf, np.inf, np.inf], function.symbol
