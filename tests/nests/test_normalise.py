"""The normal form computes the same, and variants of one program meet there."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import EXAMPLES, accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory
from nests.random_nests import random_nests
from nests.random_programs import random_program
from schedules.recipes.kernels import every_kernel
from schedules.recipes.running import differences, has_single

from gnnperf.nests import Const, Load, LoopNest, Op, normalise
from gnnperf.nests.analysis import band, extent
from gnnperf.nests.ir import Symbol


def assert_same_results(before: LoopNest, after: LoopNest) -> None:
    memory = random_memory(before, np.random.default_rng(0))
    expected = interpret(before, memory)
    single = has_single(before)
    assert not differences(expected, interpret(after, memory), single)
    backwards = interpret(after, memory, backwards=True)
    assert not differences(expected, backwards, single), "a loop is not independent"


@pytest.mark.parametrize("name", [n for n, k in every_kernel() if k.fill is None])
def test_kernels_compute_the_same(name: str) -> None:
    kernel = dict(every_kernel())[name]
    assert_same_results(kernel.nest, normalise(kernel.nest))


@given(st.randoms(use_true_random=False))
def test_programs_compute_the_same(rng: Random) -> None:
    program = random_program(rng).nest()
    assert_same_results(program, normalise(program))


@given(random_nests())
def test_nests_compute_the_same(example: LoopNest) -> None:
    assert_same_results(example, normalise(example))


@given(st.randoms(use_true_random=False))
def test_normal_form_is_stable(rng: Random) -> None:
    once = normalise(random_program(rng).nest())
    assert normalise(once) == once


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_keep_their_outputs(name: str) -> None:
    example = EXAMPLES[name]()
    assert normalise(example).outputs == example.outputs


# --------------------------------------------------------------------------- forms that must meet


def test_loop_order_does_not_matter() -> None:
    def product(order: str) -> LoopNest:
        sizes = {"i": 5, "j": 6, "k": 17}
        body = accumulate(load("C", "i", "j"), mul(load("A", "i", "k"), load("B", "k", "j")))
        buffers = [array("A", 5, 17), array("B", 17, 6), array("C", 5, 6)]
        return nest("gemm", buffers, loops({x: sizes[x] for x in order}, body))

    forms = {normalise(product(order)).body for order in ("ijk", "ikj", "jik", "jki", "kij", "kji")}
    assert len(forms) == 1
    assert band(forms.pop()[0]).iterators == ["i", "k", "j"]


def test_temporaries_of_array_code_disappear() -> None:
    n = 8
    buffers = [array("x", n), array("y", n), array("a", n, transient=True), array("b", n, transient=True)]
    chain = nest(
        "chain", buffers,
        loop("i", n, assign(load("a", "i"), mul(load("x", "i"), 2.0))),
        loop("j", n, assign(load("b", "j"), add(load("a", "j"), 1.0))),
        loop("k", n, assign(load("y", "k"), op("sqrt", load("b", "k")))),
    )  # fmt: skip
    direct = nest(
        "direct", [array("x", n), array("y", n)],
        loop("k", n, assign(load("y", "k"), op("sqrt", add(mul(load("x", "k"), 2.0), 1.0)))),
    )  # fmt: skip
    assert normalise(chain).body == normalise(direct).body


def test_a_reduction_takes_over_its_initial_value() -> None:
    n = 8
    separate = nest(
        "sum", [array("A", n, n), array("s", n)],
        loop("i", n, assign(load("s", "i"), 0.0)),
        loops({"i": n, "j": n}, accumulate(load("s", "i"), load("A", "i", "j"))),
    )  # fmt: skip
    together = nest(
        "sum", [array("A", n, n), array("s", n)],
        loops({"i": n, "j": n}, accumulate(load("s", "i"), load("A", "i", "j"), init=0.0)),
    )  # fmt: skip
    assert normalise(separate).body == normalise(together).body


def test_fission_splits_what_nothing_ties() -> None:
    n = 8
    buffers = [array(x, n) for x in "abcd"]
    fused = nest(
        "fused", buffers,
        loop("i", n, assign(load("b", "i"), load("a", "i")), assign(load("d", "i"), load("c", "i"))),
    )  # fmt: skip
    assert len(normalise(fused).body) == 2


def test_linearised_loops_are_split_again() -> None:
    """B = A.reshape(m * n) * 2, written over the flat index."""
    m, n = 5, 7
    source = load("A", op("floordiv", "x", n), op("mod", "x", n))
    flat = nest(
        "flat", [array("A", m, n), array("B", m, n)],
        loop("x", m * n, assign(load("B", op("floordiv", "x", n), op("mod", "x", n)), mul(source, 2.0))),
    )  # fmt: skip
    plain = nest(
        "plain", [array("A", m, n), array("B", m, n)],
        loops({"x_q": m, "x_m": n}, assign(load("B", "x_q", "x_m"), mul(load("A", "x_q", "x_m"), 2.0))),
    )  # fmt: skip
    assert normalise(flat).body == normalise(plain).body
    assert_same_results(flat, normalise(flat))


def test_three_loops_in_one_are_split_again() -> None:
    """Rows of A.reshape(m * n, k) are elements of A[m, n, k], whose index is divided twice."""
    m, n, k = 3, 5, 7
    row = op("floordiv", "x", k)
    flat = [op("floordiv", row, n), op("mod", row, n), op("mod", "x", k)]
    example = nest(
        "flat", [array("A", m, n, k), array("B", m, n, k)],
        loop("x", m * n * k, assign(load("B", *flat), mul(load("A", *flat), 2.0))),
    )  # fmt: skip
    whole = band(normalise(example).body[0])
    assert [extent(lp) for lp in whole.loops] == [m, n, k]
    assert all(isinstance(index, Symbol) for index in whole.statements[0].target.indices)
    assert_same_results(example, normalise(example))


def test_a_division_that_the_range_does_not_decide_stays() -> None:
    n = 12
    target = load("B", op("floordiv", add("i", 1), 4), op("mod", add("i", 1), 4))
    example = nest("wrap", [array("A", n), array("B", 4, 4)], loop("i", n, assign(target, load("A", "i"))))
    assert_same_results(example, normalise(example))


# --------------------------------------------------------------------------- what must not happen


def test_fission_keeps_locals_together() -> None:
    """Two locals, defined one after the other, both used by the third statement."""
    n = 8
    registers = [array(t, transient=True, scope="local") for t in "tu"]
    body = [
        assign(load("t"), load("x", "i")),
        assign(load("u"), load("y", "i")),
        assign(load("z", "i"), add(load("t"), load("u"))),
    ]
    example = nest("locals", [*(array(b, n) for b in "xyz"), *registers], loop("i", n, *body))
    assert len(normalise(example).body) == 1
    assert_same_results(example, normalise(example))


def test_scratch_that_all_iterations_share_is_not_distributed() -> None:
    m, n = 4, 6
    buffers = [array("A", m, n), array("B", m, n), array("row", n, transient=True)]
    body = [
        loop("j", n, assign(load("row", "j"), mul(load("A", "i", "j"), 2.0))),
        loop("j", n, assign(load("B", "i", "j"), add(load("row", "j"), load("row", 0)))),
    ]
    example = nest("rows", buffers, loop("i", m, *body))
    assert_same_results(example, normalise(example))


def test_truncation_survives_forward_substitution() -> None:
    n = 8
    example = nest(
        "truncated", [array("x", n), array("y", n), array("t", n, dtype="int32", transient=True)],
        loop("i", n, assign(load("t", "i"), mul(load("x", "i"), 3.7))),
        loop("i", n, assign(load("y", "i"), load("t", "i"))),
    )  # fmt: skip
    (only,) = normalise(example).body
    (statement,) = band(only).statements
    assert isinstance(statement.value, Op) and statement.value.name == "cast:int32"
    assert_same_results(example, normalise(example))


def test_scratch_that_is_changed_in_place_is_one_expression() -> None:
    """Whatever the order of loops; a part of it, or an element that another one needs, is not."""
    m, n = 4, 6
    buffers = [array("x", m, n), array("y", m, n), array("r", n), array("t", m, n, transient=True)]
    t, x = load("t", "i", "j"), load("x", "i", "j")
    filled = loop("j", n, loop("i", m, assign(t, mul(x, load("r", "j")))))
    clamped = loop("i", m, loop("j", n, assign(t, op("min", t, 1.0))))
    added = loop("i", m, loop("j", n, accumulate(t, x)))
    used = loop("i", m - 1, loop("j", n, assign(load("y", "i", "j"), add(t, load("t", add("i", 1), "j")))))
    example = nest("clamped", buffers, filled, clamped, added, used)
    (made,) = band(normalise(example).body[0]).statements
    assert made.value == add(op("min", mul(x, load("r", "j")), 1.0), x)
    assert_same_results(example, normalise(example))

    row = loop("j", n, assign(load("t", 0, "j"), op("min", load("t", 0, "j"), 1.0)))
    shifted = loop("i", m - 1, loop("j", n, assign(t, load("t", add("i", 1), "j"))), independent=False)
    for other in (row, shifted):
        example = nest("others", buffers, filled, other, used)
        assert len(normalise(example).body) == 3
        assert_same_results(example, normalise(example))


def test_an_integer_constant_stays_a_float_in_a_float_array() -> None:
    """1 / 2 is zero in C++, 1.0 / 2 is not."""
    n = 8
    example = nest(
        "halves", [array("y", n), array("t", n, transient=True)],
        loop("i", n, assign(load("t", "i"), 1)),
        loop("i", n, assign(load("y", "i"), op("div", load("t", "i"), 2))),
    )  # fmt: skip
    assert_same_results(example, normalise(example))
    (statement,) = normalise(example).statements()
    assert statement.value == op("div", Const(1.0), 2)


def test_initial_values_of_another_box_stay_apart() -> None:
    """Only half of the targets are set; the other half adds to what memory held."""
    n = 8
    example = nest(
        "half", [array("A", n, n), array("s", 2 * n)],
        loop("i", n, assign(load("s", mul(2, "i")), 0.0)),
        loop("i", 2 * n, loop("j", n, accumulate(load("s", "i"), load("A", op("floordiv", "i", 2), "j")))),
    )  # fmt: skip
    assert len(normalise(example).body) == 2
    assert_same_results(example, normalise(example))


def test_initial_values_of_elements_that_are_added_to_again_stay_apart() -> None:
    """Every element of the convolution has terms of several iterations."""
    n, m = 8, 3
    example = nest(
        "convolve", [array("x", n), array("w", m), array("y", n + m - 1)],
        loop("i", n + m - 1, assign(load("y", "i"), 0.0)),
        loops({"i": n, "k": m}, accumulate(load("y", add("i", "k")), mul(load("x", "i"), load("w", "k")))),
    )  # fmt: skip
    assert len(normalise(example).body) == 2
    assert_same_results(example, normalise(example))


def test_an_overwritten_source_is_not_read_late() -> None:
    """t = 2 x; x = x[::-1]; y = t: t must keep the old x."""
    n = 8
    mirrored: Load = load("w", op("sub", n - 1, "i"))
    example = nest(
        "late", [array("x", n), array("w", n), array("y", n), array("t", n, transient=True)],
        loop("i", n, assign(load("t", "i"), mul(load("x", "i"), 2.0))),
        loop("i", n, assign(load("x", "i"), mirrored)),
        loop("i", n, assign(load("y", "i"), load("t", "i"))),
    )  # fmt: skip
    assert_same_results(example, normalise(example))


@pytest.mark.parametrize(("row", "shift", "meet"), [("k", 0, True), ("k", 1, False), ("i", 0, True)])
def test_rows_that_rows_of_one_array_are_subtracted_from(row: str, shift: int, meet: bool) -> None:
    """t = L[i, k] * B[k, :]; B[i, :] -= t: every element waits for one of its own column alone."""
    n, m = 5, 4
    total = accumulate(load("B", "i", "j"), op("neg", load("t", "j")))
    scaled = assign(load("t", "j"), mul(load("L", "i", "k"), load("B", row, add("j", shift))))
    body = loop("k", "i", loop("j", m - 1, scaled), loop("j", m - 1, total), independent=False)
    buffers = [array("L", n, n), array("B", n, m), array("t", m, transient=True)]
    example = nest("rows", buffers, loop("i", n, body, independent=False))
    assert ("t" not in normalise(example).buffers) == meet
    assert_same_results(example, normalise(example))


def test_a_scratch_array_written_twice_is_not_substituted() -> None:
    n = 8
    example = nest(
        "twice", [array("x", n), array("y", n), array("t", n, transient=True)],
        loop("i", n, assign(load("t", "i"), load("x", "i"))),
        loop("i", n - 2, assign(load("t", "i"), 5.0), start=1),
        loop("i", n, assign(load("y", "i"), load("t", "i"))),
    )  # fmt: skip
    assert_same_results(example, normalise(example))
