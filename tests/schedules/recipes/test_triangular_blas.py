"""Triangular products become rectangles, which are calls of BLAS, and small triangles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import Operand, accumulate, add, array, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.kernels import polynomial, strictly_upper_sums
from schedules.recipes.running import build, call, differences

from gnnperf.errors import NotApplicable
from gnnperf.nests import Loop, LoopNest, Node, normalise
from gnnperf.schedules.recipes import DEFAULTS, Recipe, apply, emit
from gnnperf.schedules.recipes.space import relevant_fields
from gnnperf.schedules.recipes.triangular_blas import STEP, matches, staircase

(BLAS,) = (recipe for recipe in DEFAULTS if recipe.library == "blas")

Around = Callable[..., Loop]


def lower(body: Node, n: int, inner: str = "j", gap: int = 1, **options: object) -> Loop:
    """for i in 0..n, inner in 0..i + gap."""
    return loop("i", n, loop(inner, add("i", gap), body), **options)  # type: ignore[arg-type]


def upper(body: Node, n: int, inner: str = "j", gap: int = 0) -> Loop:
    """for i in 0..n, inner in i + gap..n."""
    return loop("i", n, loop(inner, n, body, start=add("i", gap)))


def rank_k(around: Around, n: int, gap: int, init: Operand | None = None, k: int = 5) -> LoopNest:
    """A triangle of C = A A^T."""
    body = accumulate(load("C", "i", "j"), mul(load("A", "i", "k"), load("A", "j", "k")), init=init)
    return nest("syrk", [array("A", n, k), array("C", n, n)], around(loop("k", k, body), n, "j", gap))


def from_the_diagonal(n: int) -> LoopNest:
    """The upper triangle of C = A^T A, whose columns are counted from the diagonal on."""
    column = add("i", "j")
    body = accumulate(load("C", "i", column), mul(load("A", "k", column), load("A", "k", "i")))
    inner = loop("k", 5, loop("j", op("sub", n, "i"), body))
    return nest("diagonal", [array("A", 5, n), array("C", n, n)], loop("i", n, inner))


def triangular_product(around: Around, n: int, gap: int, init: Operand | None = None, m: int = 6) -> LoopNest:
    """C = L B for a triangular L: the reduction is the triangular loop."""
    body = accumulate(load("C", "i", "j"), mul(load("L", "i", "k"), load("B", "k", "j")), init=init)
    buffers = [array("L", n, n), array("B", n, m), array("C", n, m)]
    return nest("trmm", buffers, around(loop("j", m, body), n, "k", gap))


def triangular_vector(around: Around, n: int, gap: int, init: Operand | None = None) -> LoopNest:
    body = accumulate(load("y", "i"), mul(load("L", "i", "j"), load("x", "j")), init=init)
    return nest("trmv", [array("L", n, n), array("x", n), array("y", n)], around(body, n, "j", gap))


def rank_2k(n: int = 35, k: int = 4) -> LoopNest:
    value = add(mul(load("A", "i", "k"), load("B", "j", "k")), mul(load("B", "i", "k"), load("A", "j", "k")))
    body = accumulate(load("C", "i", "j"), value)
    return nest("syr2k", [array("A", n, k), array("B", n, k), array("C", n, n)], lower(loop("k", k, body), n))


def rank_one(n: int = 37) -> LoopNest:
    body = accumulate(load("C", "i", "j"), mul(load("x", "i"), load("x", "j")))
    return nest("syr", [array("x", n), array("C", n, n)], lower(body, n))


KERNELS = {
    f"{kind.__name__}_{around.__name__}_{n}_{number}": kind(around, n, gap, init)
    for kind in (rank_k, triangular_product, triangular_vector)
    for around, gaps in ((lower, (1, 0, -3)), (upper, (0, 1, 4)))
    for n in (17, 32, 45)
    for number, (gap, init) in enumerate(zip(gaps, (None, 0.0, 1.5), strict=True))
} | {"rank_2k": rank_2k(), "rank_one": rank_one(), "diagonal": from_the_diagonal(45)}  # fmt: skip


def test_triangles_compute_what_the_loops_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr("gnnperf.schedules.recipes.triangular_blas.STEP", 16)  # small arrays are enough
    tiled = replace(BLAS, order="panel", tile_q=6, tile_p=5, tile_r=4)
    functions = {
        (name, recipe): emit(apply(recipe, kernel), f"{name}_{recipe.order}")
        for name, kernel in KERNELS.items()
        for recipe in (BLAS, tiled)
    }
    library = build(list(functions.values()), tmp_path)
    for name, kernel in KERNELS.items():
        memory = random_memory(kernel, np.random.default_rng(3))
        expected = interpret(kernel, memory)
        for recipe in (BLAS, tiled):
            assert "gp_blas<" in functions[name, recipe].source
            found = call(library, functions[name, recipe], kernel, memory)
            assert not differences(expected, found), (name, recipe)


def test_rectangles_are_calls_and_steps_are_shared() -> None:
    scheduled = apply(BLAS, rank_k(lower, 200, 1))
    kinds = [(lp.annotation.kind, lp.annotation.library) for lp in scheduled.loops() if lp.annotation]
    assert kinds[:2] == [("parallel", ""), ("none", "blas")]
    alone = apply(replace(BLAS, parallel="none"), rank_k(lower, 200, 1))
    assert all(lp.annotation is None or lp.annotation.kind != "parallel" for lp in alone.loops())


def other_bound(bound: Operand) -> LoopNest:
    body = accumulate(load("C", "i", "j"), mul(load("A", "i", "k"), load("A", "j", "k")))
    inner = loop("j", bound, loop("k", 5, body))
    return nest("other", [array("A", 200, 5), array("C", 200, 200)], loop("i", 100, inner))


NONE = {
    "rectangular": other_bound(100),
    "two iterations a row": other_bound(mul(2, "i")),
    "bounded on both sides": other_bound(op("min", add("i", 1), 50)),
    "in order": nest(
        "ordered",
        [array("A", 100, 5), array("C", 100, 100)],
        lower(
            loop("k", 5, accumulate(load("C", "i", "j"), mul(load("A", "i", "k"), load("A", "j", "k")))),
            100, independent=False,
        ),
    ),
    "one step": rank_k(lower, STEP, 1),
    "sums": strictly_upper_sums(200),
    "overlapping results": polynomial(200),
}  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_staircase(name: str) -> None:
    kernel = NONE[name]
    (node,) = kernel.body
    assert isinstance(node, Loop)
    assert staircase(node, kernel.buffers) is None


def test_small_triangles_follow_the_other_fields() -> None:
    with pytest.raises(NotApplicable, match="no part of the nest is a BLAS routine"):
        apply(BLAS, NONE["one step"])
    assert apply(Recipe(), NONE["one step"]).body


def test_searches_try_it() -> None:
    for kernel in (rank_k(lower, 200, 1), triangular_product(upper, 200, 0)):
        assert "library" in relevant_fields(normalise(kernel))
    assert not [*matches(NONE["sums"].body[0], NONE["sums"].buffers)]
