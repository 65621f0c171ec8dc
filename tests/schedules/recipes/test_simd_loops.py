"""Loops over the elements of a strip are one, where each element needs nothing of the others."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, array, assign, load, loop, nest, op
from nests.interpret import interpret
from schedules.recipes.running import build, call

from gnnperf.nests import LoopNest
from gnnperf.nests.ir import Annotation, Loop, Node
from gnnperf.schedules.recipes import Recipe, apply, emit
from gnnperf.schedules.recipes.simd_loops import gather_simd_loops

SIMD = Annotation("simd")


def elements(*body: Node, stop: int = 32) -> Loop:
    return replace(loop("j", stop, *body), annotation=SIMD)


def own(name: str, dtype: str = "int64", size: int = 32):  # type: ignore[no-untyped-def]
    return replace(array(name, size, dtype=dtype), transient=True, scope="local")


def strip(*body: Node) -> LoopNest:
    buffers = [array("a", 40, dtype="uint8"), array("b", 32, dtype="int64"), array("c", 32, dtype="int64")]
    return nest("strip", [*buffers, own("s"), own("t")], *body)


def shape(found: LoopNest) -> list[tuple[int, int]]:
    """Loops and statements of every outermost loop."""
    return [
        (sum(isinstance(n, Loop) for n in lp.body), len(lp.body)) for lp in found.body if isinstance(lp, Loop)
    ]


S, T, A = load("s", "j"), load("t", "j"), load("a", op("add", "j", "k"))


def test_a_sum_of_neighbours_is_one_loop_with_one_variable() -> None:
    found = gather_simd_loops(
        strip(
            elements(assign(S, 0)),
            elements(assign(T, 0)),
            loop("k", 3, elements(accumulate(T, A))),
            elements(accumulate(S, T)),
            elements(assign(load("b", "j"), op("floordiv", S, 3))),
        )
    )
    assert shape(found) == [(0, 5)]  # begun, three terms, and stored
    assert {(s.target.buffer, s.target.indices) for s in found.statements() if s.target.buffer != "b"} == {
        ("s", ())
    }
    assert found.buffers["s"].shape == ()


@pytest.mark.parametrize(
    "body",
    [
        # The second needs what the first makes of a neighbour.
        [
            elements(assign(S, load("a", "j"))),
            elements(assign(load("b", "j"), load("s", op("sub", 31, "j")))),
        ],
        # All add to one element.
        [elements(assign(S, 0)), loop("k", 3, elements(accumulate(load("s", 0), load("a", "j"))))],
        # Different elements.
        [elements(assign(S, 0)), elements(assign(load("b", "j"), S), stop=31)],
        # More terms than are written out.
        [elements(assign(S, 0)), loop("k", 40, elements(accumulate(S, load("a", "j"))))],
    ],
)
def test_others_stay_apart(body: list[Node]) -> None:
    assert len(gather_simd_loops(strip(*body)).body) == 2


def test_what_is_read_later_stays_in_the_strip() -> None:
    later = loop("m", 32, assign(load("c", "m"), load("t", "m")))
    found = gather_simd_loops(strip(elements(assign(T, 1)), elements(assign(load("b", "j"), T)), later))
    assert shape(found) == [(0, 2), (0, 1)]
    assert found.buffers["t"].shape == (32,)


def window(seed: int) -> LoopNest:
    """Means, extremes and squares of small windows of numbers of random types."""
    rng = random.Random(seed)
    of, total, out = (
        rng.choice(("uint8", "int16", "int32", "float32")),
        rng.choice(("int64", "float64")),
        "float64",
    )
    rows, columns = rng.randint(1, 3), rng.randint(1, 5)
    m, n = 9, rng.choice((37, 70, 300))
    place = load("a", op("add", "i", "k"), op("add", "j", "l"))
    value = rng.choice((place, op("mul", place, place), op("abs", op("sub", place, load("a", "i", "j")))))
    sums = [replace(array(name, dtype=total), transient=True, scope="local") for name in ("s", "q")]
    body = (
        assign(load("s"), 0 if total == "int64" else 0.0),
        assign(load("q"), rng.choice((0, 3))),
        loop("k", rows, loop("l", columns, accumulate(load("s"), value))),
        loop("k", rows, loop("l", columns, accumulate(load("q"), place))),
        assign(load("b", "i", "j"), op("sub", load("s"), op("mul", load("q"), 0.5))),
    )
    arrays = [array("a", m + rows, n + columns, dtype=of), array("b", m, n, dtype=out), *sums]
    return nest("window", arrays, loop("i", m, loop("j", n, *body)))


def test_windows_of_all_types_are_what_they_were(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    nests = [window(seed) for seed in range(24)]
    scheduled = [apply(Recipe(), n) for n in nests]
    functions = [emit(n, f"window_{at}") for at, n in enumerate(scheduled)]
    assert any(gather_simd_loops(n) != n for n in scheduled)
    library = build(functions, tmp_path)
    for one, function in zip(nests, functions, strict=True):
        a, b = one.buffers["a"], one.buffers["b"]
        memory = {
            "a": rng.integers(0, 100, int(np.prod(a.shape))).astype(a.dtype),
            "b": np.zeros(int(np.prod(b.shape)), b.dtype),
        }
        found = call(library, function, one, memory)
        expected = interpret(one, memory)
        np.testing.assert_allclose(found["b"], expected["b"], rtol=1e-6, err_msg=function.source[-3000:])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
