"""While loops: every recipe leaves them as they are, and schedules what is around and inside them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.errors import NotApplicable
from gnnperf.graph import ProgramGraph
from gnnperf.nests import Expr, Loop, LoopNest, Node, nest_graph, normalise
from gnnperf.schedules.recipes import DEFAULTS, CppFunction, apply, emit

FOREVER = 1 << 62


def turns(condition: Expr, *body: Node) -> Loop:
    return loop("turn", FOREVER, *body, independent=False, condition=condition)


def escape_times(rows: int = 7, columns: int = 19) -> LoopNest:
    """z = z * z + c for as long as |z| < 2, for every point by itself."""
    zr, zi, t, n = (load(name) for name in ("zr", "zi", "t", "n"))
    inside = op("lt", add(mul(zr, zr), mul(zi, zi)), 4.0)
    body = [
        assign(zr, 0.0), assign(zi, 0.0), assign(n, 0),
        turns(
            op("and", op("lt", n, 40), inside),
            assign(t, add(op("sub", mul(zr, zr), mul(zi, zi)), op("sub", load("cr", "i", "j"), 1.5))),
            assign(zi, add(mul(mul(2.0, zr), zi), op("sub", load("ci", "i", "j"), 1.0))),
            assign(zr, t),
            accumulate(n, 1),
        ),
        assign(load("steps", "i", "j"), n),
    ]  # fmt: skip
    own = [array(x, transient=True, scope="local") for x in ("zr", "zi", "t")]
    own.append(array("n", dtype="int64", transient=True, scope="local"))
    fields = [array(x, rows, columns) for x in ("cr", "ci")] + [array("steps", rows, columns, dtype="int64")]
    return nest("escape_times", [*fields, *own], loops({"i": rows, "j": columns}, *body))


def relaxation(n: int = 37) -> LoopNest:
    """Sweeps until a sum of changes is small: nests inside, a scalar that they compute as the condition."""
    middle = mul(0.5, add(load("a", "i"), load("a", add("i", 2))))
    change = op("abs", op("sub", load("b", add("i", 1)), load("a", add("i", 1))))
    body = [
        loop("i", n - 2, assign(load("b", add("i", 1)), middle)),
        assign(load("error"), 0.0),
        loop("i", n - 2, accumulate(load("error"), change)),
        loop("i", n - 2, assign(load("a", add("i", 1)), load("b", add("i", 1)))),
    ]
    return nest(
        "relaxation",
        [array("a", n), array("b", n), array("error")],
        turns(op("gt", load("error"), 0.3), *body),
    )


@pytest.mark.parametrize("make", [escape_times, relaxation])
def test_recipes_compute_what_the_interpreter_computes(make: object, tmp_path: Path) -> None:
    example: LoopNest = make()  # type: ignore[operator]
    functions: list[CppFunction] = []
    for number, recipe in enumerate(DEFAULTS):
        with suppress(NotApplicable):
            functions.append(emit(apply(recipe, normalise(example)), f"while_{number}"))
    assert functions
    library = build(functions, tmp_path)
    memory = random_memory(example, np.random.default_rng(0))
    expected = interpret(example, memory)
    assert not differences(expected, interpret(normalise(example), memory, backwards=True))
    for function in functions:
        assert not differences(expected, call(library, function, example, memory)), function.symbol


def test_the_graph_says_that_the_extent_is_unknown() -> None:
    graph: ProgramGraph = nest_graph(normalise(relaxation()))
    (outer,) = (n for n in graph.nodes if n.kind == "loop" and n.features.get("ordered"))
    assert outer.features["extent_unknown"]
    assert "extent" not in outer.features
