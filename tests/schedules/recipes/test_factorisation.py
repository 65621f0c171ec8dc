"""Matrices that are factorised, in whatever order people write the loops, become calls of LAPACK's kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, mul, nest, op
from nests.interpret import Memory, interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.nests import LoopNest, normalise
from gnnperf.nests.ir import Load, Node, Op
from gnnperf.schedules.recipes import Recipe, apply, emit, library_recipes
from gnnperf.schedules.recipes.factorisation import match_factorisation

N = 45
LIBRARY = Recipe(library="blas")
Element = Callable[[object, object], Load]


def a(i: object, j: object) -> Load:
    return load("A", i, j)


def turned(i: object, j: object) -> Load:
    return load("A", j, i)


def root(x: Load) -> Node:
    return assign(x, Op("sqrt", (x,)))


def minus(target: Load, left: Load, right: Load) -> Node:
    return accumulate(target, op("neg", mul(left, right)))


def divided(x: Load, by: Load) -> Node:
    return assign(x, op("div", x, by))


def factorised(*body: Node, outer: str = "k", stop: object = N, **options: object) -> LoopNest:
    rows = loop(outer, stop, *body, independent=False)
    return nest("factorised", [array("A", N, N, **options)], rows)


def cholesky_right(x: Element = a, **options: object) -> LoopNest:
    """What a finished column takes from those that follow is taken at once."""
    k1 = add("k", 1)
    return factorised(
        root(x("k", "k")),
        loop("i", N, divided(x("i", "k"), x("k", "k")), start=k1),
        loop("j", N, loop("i", N, minus(x("i", "j"), x("i", "k"), x("j", "k")), start="j"), start=k1),
        **options,
    )


def cholesky_left(x: Element = a) -> LoopNest:
    """A row takes from itself what those before take."""
    inner = loop("k", "j", minus(x("i", "j"), x("i", "k"), x("j", "k")))
    return factorised(
        loop("j", "i", inner, divided(x("i", "j"), x("j", "j")), independent=False),
        loop("k", "i", minus(x("i", "i"), x("i", "k"), x("i", "k"))),
        root(x("i", "i")),
        outer="i",
    )


def cholesky_apart() -> LoopNest:
    """Out of place, with a sum of its own."""
    s, x = load("s"), lambda i, j: load("L", i, j)

    def rest(i: str, *after: Node) -> list[Node]:
        return [assign(s, 0.0), loop("k", "j", accumulate(s, mul(x(i, "k"), x("j", "k")))), *after]

    first = assign(x("j", "j"), Op("sqrt", (op("sub", a("j", "j"), s),)))
    other = assign(x("i", "j"), op("div", op("sub", a("i", "j"), s), x("j", "j")))
    rows = loop("i", N, *rest("i", other), start=add("j", 1), independent=False)
    body = loop("j", N, *rest("j", first), rows, independent=False)
    sums = array("s", transient=True)
    return nest("apart", [array("A", N, N), array("L", N, N), sums], body)


def lu_left() -> LoopNest:
    below = loop("k", "j", minus(a("i", "j"), a("i", "k"), a("k", "j")))
    above = loop("k", "i", minus(a("i", "j"), a("i", "k"), a("k", "j")))
    return factorised(
        loop("j", "i", below, divided(a("i", "j"), a("j", "j")), independent=False),
        loop("j", N, above, start="i", independent=False),
        outer="i",
    )


def lu_right(x: Element = a) -> LoopNest:
    """The last row has nothing left to do."""
    k1 = add("k", 1)
    update = minus(x("i", "j"), x("i", "k"), x("k", "j"))
    return factorised(
        loop("i", N, divided(x("i", "k"), x("k", "k")), start=k1),
        loop("i", N, loop("j", N, update, start=k1), start=k1),
        stop=N - 1,
    )


FORMS = {
    "from what is left": (cholesky_right(), "lower"),
    "to what remains": (cholesky_left(), "lower"),
    "out of place": (cholesky_apart(), "lower"),
    "upper triangle": (cholesky_right(turned), "upper"),
    "upper triangle, by columns": (cholesky_left(turned), "upper"),
    "single precision": (cholesky_right(dtype="float32"), "lower"),
    "with room behind rows": (cholesky_right(strides=(N + 3, 1)), "lower"),
    "LU": (lu_left(), "unit lower"),
    "LU, row by row": (lu_right(), "unit lower"),
    "LU, ones above": (lu_right(turned), "unit upper"),
}


def memory_of(example: LoopNest) -> Memory:
    memory = random_memory(example, np.random.default_rng(0))
    buffer = example.buffers["A"]
    rows = int(str(buffer.strides[0]))
    a = np.zeros((N, rows))
    a.reshape(-1)[: memory["A"].size] = memory["A"]
    a[:, :N] = (a[:, :N] + a[:, :N].T) / 2 + 2 * N * np.eye(N)
    memory["A"] = a.reshape(-1)[: memory["A"].size].astype(buffer.dtype)
    return memory


@pytest.mark.parametrize("name", FORMS)
def test_every_order_of_the_loops_is_recognised(name: str) -> None:
    example, kind = FORMS[name]
    for form in (example, normalise(example)):
        (found,) = (match_factorisation(node, form.buffers) for node in form.body)
        assert found is not None
        assert (found.kind, found.rows) == (kind, N)
        assert library_recipes(form) == [library_recipes(form)[0]]


def test_factors_are_computed_by_the_library(tmp_path: Path) -> None:
    scheduled = {
        (name, parallel): apply(replace(LIBRARY, parallel=parallel), form)
        for name, (form, _) in FORMS.items() for parallel in ("none", "spatial")
    }  # fmt: skip
    functions = {key: emit(found, f"f{k}") for k, (key, found) in enumerate(scheduled.items())}
    library = build([*functions.values()], tmp_path)
    for (name, parallel), function in functions.items():
        form, kind = FORMS[name]
        assert f"  gp_{'getrf' if kind.startswith('unit') else 'potrf'}<" in function.source
        memory = memory_of(form)
        expected = interpret(form, memory)
        single = form.buffers["A"].dtype == "float32"
        assert not differences(expected, call(library, function, form, memory), single), (name, parallel)


@pytest.mark.parametrize("n", [20, 97, 300])
def test_large_matrices_are_taken_in_halves(n: int, tmp_path: Path) -> None:
    rng, sizes = np.random.default_rng(n), {"n": n}
    g = rng.random((n, n))
    positive, dominant = g @ g.T + n * np.eye(n), g + n * np.eye(n)
    for kind, matrix in (("potrf", positive), ("getrf", dominant)):
        example = cholesky_right() if kind == "potrf" else lu_right()
        function = emit(apply(LIBRARY, example), f"g_{kind}_{sizes['n']}")
        source = function.source.replace(f", {N}, &b_A[0], {N});", f", {n}, &b_A[0], {n});")
        folder = tmp_path / kind
        folder.mkdir()
        library = build([replace(function, source=source)], folder)
        memory = {"A": matrix.copy().reshape(-1)}
        found = call(library, function, example, memory)["A"].reshape(n, n)
        if kind == "potrf":
            np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(positive), rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(np.triu(found, 1), np.triu(positive, 1))
        else:
            product = (np.tril(found, -1) + np.eye(n)) @ np.triu(found)
            np.testing.assert_allclose(product, dominant, rtol=1e-9)


def test_what_has_no_root_gives_no_numbers(tmp_path: Path) -> None:
    example = cholesky_right()
    function = emit(apply(LIBRARY, example), "f")
    memory = memory_of(example)
    memory["A"].reshape(N, N)[7, 7] = -1.0
    found = call(build([function], tmp_path), function, example, memory)["A"].reshape(N, N)
    assert np.isfinite(np.tril(found)[:7]).all()
    assert np.isnan(found[7, 7])
    assert np.isnan(found[-1, -1])


def wrong() -> dict[str, LoopNest]:
    k1 = add("k", 1)
    pivot, product = root(a("k", "k")), mul(a("i", "k"), a("j", "k"))
    column = loop("i", N, divided(a("i", "k"), a("k", "k")), start=k1)

    def columns(update: Node, start: object = "j") -> Node:
        return loop("j", N, loop("i", N, update, start=start), start=k1)

    subtracted = minus(a("i", "j"), a("i", "k"), a("j", "k"))
    update = columns(subtracted)
    power = assign(a("i", "j"), op("max", op("pow", a("i", "j"), 1.5), 0.0))
    return {
        "powers that may be of negative numbers": factorised(loop("i", N, loop("j", N, power))),
        "no root": factorised(column, update),
        "the root last": factorised(column, update, pivot),
        "a root alone": factorised(pivot, column),
        "half of the rows": factorised(pivot, column, update, stop=N // 2),
        "two rows short": factorised(pivot, column, update, stop=N - 2),
        "added": factorised(pivot, column, columns(accumulate(a("i", "j"), product))),
        "the whole square": factorised(pivot, column, columns(subtracted, start=k1)),
    }


@pytest.mark.parametrize("name", wrong())
def test_what_is_no_factorisation(name: str) -> None:
    example = wrong()[name]
    assert not [n for n in example.body if match_factorisation(n, example.buffers)]


def test_sums_that_others_look_at_stay() -> None:
    example = cholesky_apart()
    (rows,) = example.body
    after = assign(load("A", 0, 0), load("s"))
    both = nest("both", [*example.buffers.values()], rows, after)
    assert "  gp_potrf<" not in emit(apply(LIBRARY, both), "f").source
