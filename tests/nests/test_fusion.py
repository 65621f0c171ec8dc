"""Units of a program: same results, every dependence kept, and loops shared only where they may be."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory, span
from nests.random_programs import Program, random_program
from schedules.recipes.kernels import softmax
from schedules.recipes.running import differences, has_single

from gnnperf.nests import LoopNest, fuse_outermost, normalise, partition
from gnnperf.nests.analysis import accesses


def run_in_units(program: Program, units: list[list[int]]) -> dict[str, np.ndarray]:
    """Every unit normalised by itself; scratch that other units touch lives in memory."""
    start = random_memory(program.nest(), np.random.default_rng(0))
    memory = start | {
        n: np.zeros(span(b), b.dtype)
        for n, b in program.buffers.items()
        if b.transient and b.scope == "global"
    }
    for unit in units:
        others = [n for i, item in enumerate(program.items) if i not in unit for n in item]
        shared = {a.load.buffer for n in others for a in accesses(n)} | program.live_out
        buffers = {
            n: replace(b, transient=b.transient and n not in shared) if b.scope == "global" else b
            for n, b in program.buffers.items()
        }
        body = tuple(n for i in unit for n in program.items[i])
        memory |= interpret(normalise(LoopNest("unit", buffers, body)), memory)
    return {n: memory[n] for n in start}


@given(st.randoms(use_true_random=False))
def test_units_compute_what_the_program_computes(rng: Random) -> None:
    program = random_program(rng)
    units = partition(program.items, program.buffers, program.live_out)
    assert sorted(i for unit in units for i in unit) == list(range(len(program.items)))
    assert all(unit == sorted(unit) for unit in units)
    memory = random_memory(program.nest(), np.random.default_rng(0))
    expected = interpret(program.nest(), memory)
    assert not differences(expected, run_in_units(program, units), has_single(program.nest()))


@given(st.randoms(use_true_random=False))
def test_sharing_the_outermost_loop_computes_the_same(rng: Random) -> None:
    program = normalise(random_program(rng).nest())
    fused = fuse_outermost(program)
    if fused is not None:
        memory = random_memory(program, np.random.default_rng(0))
        expected, single = interpret(program, memory), has_single(program)
        assert not differences(expected, interpret(fused, memory), single)
        assert not differences(expected, interpret(fused, memory, backwards=True), single)


def test_softmax_is_one_unit() -> None:
    example = softmax(5, 7)
    items = [(node,) for node in example.body]
    assert partition(items, example.buffers, {"X", "Y"}) == [list(range(len(items)))]
    fused = fuse_outermost(normalise(example))
    assert fused is not None and len(fused.body) == 1


def test_an_expression_is_not_cut_in_two() -> None:
    """Part of the second sweep reads the row that the first one has just made, but all of it is one value."""
    n = 6
    rows = {"i": n - 2, "j": n}
    here, below = load("b", add("i", 1), "j"), load("b", add("i", 2), op("sub", n - 1, "j"))
    items = [
        loops(rows, assign(here, load("a", "i", "j"))),
        loops(rows, assign(load("t", "i", "j"), mul(here, 2.0))),
        loops(rows, assign(load("u", "i", "j"), add(load("t", "i", "j"), below))),
        loops(rows, assign(load("a", add("i", 1), "j"), load("u", "i", "j"))),
    ]
    buffers = [array(x, n, n) for x in "ab"] + [array(x, n, n, transient=True) for x in "tu"]
    assert partition([(n,) for n in items], {b.name: b for b in buffers}, {"a", "b"}) == [[0], [1, 2, 3]]


def test_unrelated_items_are_units_of_their_own() -> None:
    n = 6
    example = nest(
        "apart", [array(x, n) for x in "abcd"],
        loop("i", n, assign(load("b", "i"), load("a", "i"))),
        loop("i", n, assign(load("d", "i"), load("c", "i"))),
    )  # fmt: skip
    assert partition([(n,) for n in example.body], example.buffers, set("abcd")) == [[0], [1]]


def test_a_shifted_read_forbids_sharing() -> None:
    n = 6
    example = nest(
        "shifted", [array(x, n) for x in "abc"],
        loop("i", n, assign(load("b", "i"), load("a", "i"))),
        loop("i", n, assign(load("c", "i"), load("b", op("sub", n - 1, "i")))),
    )  # fmt: skip
    assert fuse_outermost(example) is None


def test_a_loop_inside_a_sequential_one_is_not_shared() -> None:
    """for t: for i: A[i] = A[i] + B[i - 1]; B changes with t between."""
    n = 6
    inner = loop("i", n, assign(load("A", "i"), add(load("A", "i"), load("B", "i"))))
    example = nest(
        "steps", [array("A", n), array("B", n), array("C", n)],
        loop("t", 3, inner, independent=False),
        loop("i", n, assign(load("C", "i"), mul(load("A", "i"), 2.0))),
    )  # fmt: skip
    assert fuse_outermost(example) is None


def test_a_loop_bounded_by_another_is_not_pulled_outside() -> None:
    n = 6
    example = nest(
        "triangles", [array("A", n, n), array("s", n), array("y", n)],
        loop("i", n, loop("j", "i", accumulate(load("s", "j"), load("A", "i", "j")))),
        loop("i", n, loop("j", "i", accumulate(load("y", "j"), load("s", "j")))),
    )  # fmt: skip
    assert fuse_outermost(example) is None


def test_a_sum_over_all_rows_is_complete_before_it_is_used() -> None:
    m, n = 4, 6
    example = nest(
        "centred", [array("A", m, n), array("s", n, transient=True), array("B", m, n)],
        loops({"i": m, "j": n}, accumulate(load("s", "j"), load("A", "i", "j"), init=0.0)),
        loops({"i": m, "j": n}, assign(load("B", "i", "j"), op("sub", load("A", "i", "j"), load("s", "j")))),
    )  # fmt: skip
    fused = fuse_outermost(example)
    assert fused is not None
    memory = random_memory(example, np.random.default_rng(0))
    assert not differences(interpret(example, memory), interpret(fused, memory))
    assert next(fused.loops()).iterator == "j"
