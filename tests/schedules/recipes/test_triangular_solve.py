"""Triangular systems, as people write them, become calls of trsm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import Operand, accumulate, add, array, assign, expr, load, loop, mul, nest, op
from nests.interpret import Memory, interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.errors import NotApplicable
from gnnperf.nests import Loop, LoopNest, normalise
from gnnperf.nests.analysis import access_counts
from gnnperf.nests.ir import Expr, Load, Node
from gnnperf.schedules.recipes import Recipe, apply, emit
from gnnperf.schedules.recipes.triangular_solve import match_solve

N, M = 21, 13
SOLVE = Recipe(library="blas")


def system(
    *, left: bool = True, backward: bool = False, unit: bool = False, turned: bool = False,
    across: bool = False, apart: bool = False, columns: bool = True, first: int = 0, dtype: str = "float64",
) -> LoopNest:  # fmt: skip
    """left: rows are finished one by one from those before; else each is taken from those that follow.
    turned: the matrix is stored transposed; across: the solution is. first: of the rows and columns that
    take part. apart: the sum has a variable of its own, the right-hand side an array."""
    rows = N - first

    def a(i: Operand, k: Operand) -> Load:
        return load("A", k, i) if turned else load("A", i, k)

    def x(i: Operand) -> Load:
        if not columns:
            return load("X", i)
        return load("X", "j", i) if across else load("X", i, "j")

    i: Expr = op("sub", N - 1, "i") if backward else add("i", first)
    if left:
        begin, end = (add(i, 1), expr(N)) if backward else (expr(first), i)
        product = mul(a(i, "k"), x("k"))
    else:
        begin, end = (expr(first), i) if backward else (add(i, 1), expr(N))
        product = mul(a("k", i), x(i))
    body: list[Node]
    if apart:
        s = load("s", "j") if columns else load("s")
        b = replace(x(i), buffer="B")
        rest = op("sub", b, s)
        solved = rest if unit else op("div", rest, a(i, i))
        body = [assign(s, 0.0), loop("k", end, accumulate(s, product), start=begin), assign(x(i), solved)]
    else:
        target = x(i) if left else x("k")
        update = loop("k", end, accumulate(target, op("neg", product)), start=begin, independent=not left)
        divide = [] if unit else [assign(x(i), op("div", x(i), a(i, i)))]
        body = [update, *divide] if left else [*divide, update]
    outer: Node = loop("i", rows, *body, independent=False)
    shape = (N,) if not columns else (M, N) if across else (N, M)
    buffers = [array("A", N, N, dtype=dtype), array("X", *shape, dtype=dtype)]
    if apart:
        buffers += [
            array("B", *shape, dtype=dtype),
            array("s", *([M] if columns else []), dtype=dtype, transient=True),
        ]
    return nest("system", buffers, loop("j", M, outer) if columns else outer)


def memory_of(example: LoopNest) -> Memory:
    """A matrix that is far from singular: the diagonal outweighs the rest."""
    memory = random_memory(example, np.random.default_rng(0))
    a = memory["A"].reshape(N, N) / N
    np.fill_diagonal(a, np.linspace(1.0, 2.0, N))
    memory["A"] = a.astype(example.buffers["A"].dtype).reshape(-1)
    return memory


FORMS = {
    "left": system(),
    "right": system(left=False),
    "upper": system(backward=True),
    "upper, right": system(backward=True, left=False),
    "diagonal of ones": system(unit=True),
    "upper, right, ones": system(backward=True, left=False, unit=True),
    "matrix transposed": system(turned=True),
    "upper, matrix transposed": system(backward=True, turned=True, left=False),
    "solution transposed": system(across=True),
    "upper, all transposed": system(backward=True, turned=True, across=True),
    "a vector": system(columns=False),
    "an upper vector": system(columns=False, backward=True, turned=True),
    "a corner": system(first=4),
    "a corner, upper, right": system(first=4, backward=True, left=False),
    "apart": system(apart=True),
    "apart, a vector": system(apart=True, columns=False, unit=True),
    "apart, upper": system(apart=True, backward=True),
    "single": system(dtype="float32"),
}


def test_systems_are_solved_by_the_library(tmp_path: Path) -> None:
    scheduled = {}
    for name, example in FORMS.items():
        for parallel in ("none", "spatial"):
            scheduled[name, parallel] = apply(replace(SOLVE, parallel=parallel), example)
    functions = {key: emit(found, f"f{k}") for k, (key, found) in enumerate(scheduled.items())}
    assert all(function.source.count("gp_trsm<") == 1 for function in functions.values())
    library = build([*functions.values()], tmp_path)
    for (name, parallel), function in functions.items():
        memory = memory_of(FORMS[name])
        expected = interpret(FORMS[name], memory)
        single = FORMS[name].buffers["A"].dtype == "float32"
        found = call(library, function, FORMS[name], memory)
        assert not differences(expected, found, single), (name, parallel)
        scheduled_too = interpret(scheduled[name, parallel], memory)  # what the loops of the call say
        assert not differences(expected, scheduled_too, single), name


@pytest.mark.parametrize("name", FORMS)
def test_the_normal_form_is_recognised_too(name: str) -> None:
    found = apply(SOLVE, normalise(FORMS[name]))
    assert any(lp.annotation and lp.annotation.library for lp in found.loops())


def test_what_is_no_triangular_system() -> None:
    whole = system()
    (columns,) = whole.body
    assert isinstance(columns, Loop)
    (rows,) = columns.body
    assert isinstance(rows, Loop)
    update, divide = rows.body
    assert isinstance(update, Loop)

    def with_rows(*body: Node) -> LoopNest:
        return replace(whole, body=(replace(columns, body=(replace(rows, body=body),)),))

    x, i = load("X", "i", "j"), "i"
    wrong = {
        "one row short": with_rows(replace(update, stop=op("sub", i, 1)), divide),
        "from the second row": with_rows(replace(update, start=expr(1)), divide),
        "with itself": with_rows(replace(update, stop=add(i, 1)), divide),
        "another diagonal": with_rows(update, assign(x, op("div", x, load("A", i, op("sub", N - 1, i))))),
        "multiplied": with_rows(update, assign(x, mul(x, load("A", i, i)))),
        "divided first": with_rows(divide, update),
        "added": with_rows(loop("k", i, accumulate(x, mul(load("A", i, "k"), load("X", "k", "j")))), divide),
        "scaled": with_rows(
            loop("k", i, accumulate(x, op("neg", mul(mul(2.0, load("A", i, "k")), load("X", "k", "j"))))),
            divide,
        ),
        "its own matrix": with_rows(
            loop("k", i, accumulate(x, op("neg", mul(load("X", i, "k"), load("X", "k", "j"))))), divide
        ),
        "another column": with_rows(
            loop("k", i, accumulate(x, op("neg", mul(load("A", i, "k"), load("X", "k", 0))))), divide
        ),
        "as many rows as columns before": replace(
            whole, body=(replace(columns, body=(replace(rows, stop=expr("j")),)),)
        ),
        "rows from the column's": replace(
            whole,
            body=(
                replace(
                    columns,
                    body=(replace(rows, start=expr("j"), body=(replace(update, start=expr("j")), divide)),),
                ),
            ),
        ),
        "integers": system(dtype="int64"),
    }
    for name, example in wrong.items():
        assert match_solve(example.body[0], example.buffers, {}) is None, name
    with pytest.raises(NotApplicable, match="BLAS"):
        apply(SOLVE, wrong["divided first"])


def test_a_sum_is_kept_apart_where_it_starts_from_zero_and_nothing_else_reads_it() -> None:
    example = system(apart=True)
    (columns,) = example.body
    assert isinstance(columns, Loop) and isinstance(columns.body[0], Loop)
    clear, update, divide = columns.body[0].body
    counts = access_counts(example.body)
    assert match_solve(columns, example.buffers, counts) is not None
    assert match_solve(columns, example.buffers, {**counts, "s": counts["s"] + 1}) is None

    def with_rows(*body: Node) -> Loop:
        return replace(columns, body=(replace(columns.body[0], body=body),))

    owned = loop(
        "k", "i", accumulate(load("s", "j"), mul(load("A", "i", "k"), load("X", "k", "j")), init=0.0)
    )
    for body, solves in (((owned, divide), True), ((update, divide), False), ((clear, owned, divide), False)):
        node = with_rows(*body)
        assert (match_solve(node, example.buffers, access_counts((node,))) is not None) == solves
