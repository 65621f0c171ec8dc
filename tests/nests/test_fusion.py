"""Units of a program: same results, every dependence kept, and loops shared only where they may be."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory, span
from nests.random_programs import Program, random_program
from schedules.recipes.kernels import softmax
from schedules.recipes.running import differences, has_single

from gnnperf.nests import LoopNest, fuse_outermost, normalise, partition
from gnnperf.nests.analysis import accesses
from gnnperf.nests.combine import combine
from gnnperf.nests.coverage import flow
from gnnperf.nests.ir import Expr, Loop, Node, Symbol
from gnnperf.nests.partition import MAX_PASSES
from gnnperf.nests.text import expression_text
from gnnperf.schedules.recipes import Recipe, apply


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


def test_what_can_be_computed_again_in_one_nest_is_one_unit() -> None:
    """Rows at twice the place of those that read them: no loop is shared."""
    n = 6
    pairs = [load("t", mul(2, "i"), "j"), load("t", add(mul(2, "i"), 1), "j")]
    items = [
        loops({"i": 2 * n, "j": n}, assign(load("t", "i", "j"), mul(load("a", "i", "j"), 0.5))),
        loops({"i": n, "j": n}, assign(load("b", "i", "j"), op("add", *pairs))),
        loops({"i": n, "j": n}, assign(load("c", "i", "j"), op("sub", *pairs))),
    ]
    buffers = [array("a", 2 * n, n), array("t", 2 * n, n, transient=True), array("b", n, n), array("c", n, n)]
    known = {b.name: b for b in buffers}
    assert partition([(node,) for node in items], known, {"a", "b", "c"}) == [[0, 1, 2]]


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


# --------------------------------------------------------------------------- ranges that differ


def relaxed(m: int = 20, n: int = 9, shift: int = 0) -> LoopNest:
    """out = a; out[1:-1] = a[:-2] + a[2:], with the second loop counted from 1 - shift."""
    row = add("r", shift) if shift else Symbol("r")
    update = add(load("a", op("sub", row, 1), "c"), load("a", add(row, 1), "c"))
    inside = loop("c", n - 1, assign(load("out", row, "c"), update), start=1)
    return nest(
        "relaxed", [array("a", m, n), array("out", m, n)],
        loops({"i": m, "j": n}, assign(load("out", "i", "j"), load("a", "i", "j"))),
        loop("r", m - 1 - shift, inside, start=1 - shift),
    )  # fmt: skip


@pytest.mark.parametrize("shift", [0, 1])
def test_rows_that_one_nest_has_alone_are_peeled_off(shift: int) -> None:
    example = relaxed(shift=shift)
    fused = fuse_outermost(example)
    assert fused is not None
    above, below, shared = fused.body
    ends = [(expression_text(n.start), expression_text(n.stop)) for n in fused.body if isinstance(n, Loop)]
    assert ends == [("0", "1"), ("19", "20"), ("1", "19")]
    assert all(len([*n.body]) == 1 for n in (above, below) if isinstance(n, Loop))
    assert isinstance(shared, Loop) and len(shared.body) == 2
    memory = random_memory(example, np.random.default_rng(0))
    for backwards in (False, True):
        assert not differences(interpret(example, memory), interpret(fused, memory, backwards))
    assert partition([(n,) for n in example.body], example.buffers, {"a", "out"}) == [[0, 1]]


def test_most_iterations_have_to_be_shared() -> None:
    assert fuse_outermost(relaxed(17)) is None  # 15 shared, and 2 that only the copy has
    assert fuse_outermost(relaxed(18)) is not None


def test_another_row_of_what_the_other_nest_writes_forbids_sharing() -> None:
    """out[i + 1] and out[i] at once: no shift brings both together."""
    m = 40
    example = nest(
        "torn", [array("a", m), array("out", m)],
        loop("i", m, assign(load("out", "i"), load("a", "i"))),
        loop("i", m - 1, assign(load("out", "i"), load("out", add("i", 1))), start=1),
    )  # fmt: skip
    assert fuse_outermost(example) is None


@given(st.randoms(use_true_random=False))
def test_ranges_that_differ_compute_the_same(rng: Random) -> None:
    """Chains of nests over different rows, counted from different places, under recipes that fuse."""
    m, n = rng.randint(18, 40), rng.randint(3, 6)
    names = [f"b{k}" for k in range(rng.randint(2, 4))]
    nests = []
    for position, name in enumerate(names):
        low, high, shift = rng.randint(0, 1), rng.randint(0, 1), rng.randint(0, 2)
        row = add("r", shift)
        target = rng.choice(names[: position + 1])
        value = load("a", row, "c")
        if low and high:
            value = add(value, load("a", add("r", shift - 1), "c"), load("a", add("r", shift + 1), "c"))
        if position:
            others = [other for other in names if other != target]
            value = add(value, load(rng.choice(others), row, op("sub", n - 1, "c")))
        body: Node = loop("c", n, assign(load(target, row, "c"), value))
        if target == name and rng.random() < 0.5:
            sum_of = accumulate(load("s", row), load(name, row, "c"), init=0.0)
            nests.append(loop("r", m - high - shift, loop("c", n, sum_of), start=low - shift))
        nests.insert(position, loop("r", m - high - shift, body, start=low - shift))
    scratch = {name for name in names if rng.random() < 0.3}
    buffers = [array("a", m, n), *(array(x, m, n, transient=x in scratch) for x in names), array("s", m)]
    example = nest("chain", buffers, *nests)
    memory = random_memory(example, np.random.default_rng(0))
    if exposed := flow(example.body).exposed & scratch:  # what is read before it is written is garbage
        example = replace(example, buffers={**example.buffers, **{x: array(x, m, n) for x in exposed}})
        memory = random_memory(example, np.random.default_rng(0))
    expected = interpret(example, memory)
    fused = fuse_outermost(example)
    assume(fused is not None)
    assert fused is not None
    assert not differences(expected, interpret(fused, memory))
    assert not differences(expected, interpret(fused, memory, backwards=True))
    for width in (1, 4):
        scheduled = apply(Recipe(fuse=width, vector="none"), example)
        assert not differences(expected, interpret(scheduled, memory))


# --------------------------------------------------------------------------- one pass over a matrix


@pytest.mark.parametrize("n", [10, 12])
@pytest.mark.parametrize("order", ["one after the other", "rows first", "columns first"])
def test_a_matrix_is_read_once_for_a_product_and_one_with_its_transpose(order: str, n: int) -> None:
    """y = A x; z = A.T y. Or, in either order, z = A.T w."""
    m = 12
    chained = order == "one after the other"
    weight = load("y" if chained else "w", "i")
    by_rows = loops(
        {"i": m, "j": n}, accumulate(load("y", "i"), mul(load("A", "i", "j"), load("x", "j")), init=0.0)
    )
    by_columns = loops(
        {"j": n, "i": m}, accumulate(load("z", "j"), mul(load("A", "i", "j"), weight), init=0.0)
    )
    example = nest(
        "normal",
        [array("A", m, n), array("x", n), array("w", m), array("y", m, transient=chained), array("z", n)],
        *([by_columns, by_rows] if order == "columns first" else [by_rows, by_columns]),
    )
    items = [(node,) for node in example.body]
    assert partition(items, example.buffers, set(example.buffers) - ({"y"} if chained else set())) == [[0, 1]]
    fused = fuse_outermost(example)
    assert fused is not None
    initial, shared = fused.body
    assert [s.target.buffer for s in LoopNest("", fused.buffers, (initial,)).statements()] == ["z"]
    assert isinstance(shared, Loop) and shared.iterator == "i" and len(shared.body) == 2
    assert all(s.init is None for s in fused.statements() if s.target.buffer == "z")
    memory = random_memory(example, np.random.default_rng(0))
    for backwards in (False, True):
        assert not differences(interpret(example, memory), interpret(fused, memory, backwards))


def test_what_reads_one_array_once_is_one_unit_and_products_are_not() -> None:
    """q = A p and s = A.T r have but A in common, as have A B and A C, each of which reads it often."""
    n = 10

    def product(target: str, other: str) -> Node:
        value = mul(load("A", "i", "k"), load(other, "k", "j"))
        return loops({"i": n, "j": n, "k": n}, accumulate(load(target, "i", "j"), value, init=0.0))

    vectors = [
        loops(
            {"i": n, "j": n}, accumulate(load("q", "i"), mul(load("A", "i", "j"), load("p", "j")), init=0.0)
        ),
        loops(
            {"j": n, "i": n}, accumulate(load("s", "j"), mul(load("A", "i", "j"), load("r", "i")), init=0.0)
        ),
    ]
    matrices = [product("D", "B"), product("E", "C")]
    arrays = [array(x, n, n) for x in "ABCDE"] + [array(x, n) for x in "pqrs"]
    buffers = {b.name: b for b in arrays}
    assert partition([(node,) for node in vectors], buffers, set("Apqrs")) == [[0, 1]]
    assert partition([(node,) for node in matrices], buffers, set("ABCDE")) == [[0], [1]]


def test_a_sum_that_is_used_further_on_is_not_shared() -> None:
    """s = sum(a * b); c = s * a: no row of c is known before all of s is."""
    n = 20
    example = nest(
        "scaled", [array(x, n) for x in "abcd"] + [array("s", transient=True)],
        loop("i", n, assign(load("d", "i"), mul(load("a", "i"), load("b", "i")))),
        loop("i", n, accumulate(load("s"), load("d", "i"), init=0.0)),
        loop("i", n, assign(load("c", "i"), mul(load("a", "i"), load("s")))),
    )  # fmt: skip
    assert fuse_outermost(example) is None
    together = fuse_outermost(replace(example, body=example.body[:2]))
    assert together is not None and len(together.body) == 2  # s = 0, and one loop


def test_few_nests_run_together_only_because_they_read_the_same() -> None:
    n = 10
    items = [(loop("i", n, assign(load(f"b{k}", "i"), mul(load("a", "i"), float(k)))),) for k in range(11)]
    buffers = {b.name: b for b in [array("a", n), *(array(f"b{k}", n) for k in range(11))]}
    assert [len(unit) for unit in partition(items, buffers, set(buffers))] == [MAX_PASSES, 3]


def test_a_long_expression_is_one_of_these_nests() -> None:
    """Which NumPy computes in ten arrays: that many pairs of them are two nests that read the same."""
    n, terms = 10, MAX_PASSES + 2
    names = [[f"{name}{k}" for k in range(terms)] for name in "st"]
    items = [
        (loop("i", n, assign(load(new, "i"), add(load("a", "i"), load(old, "i")))),)
        for chain in names
        for old, new in zip(["a", *chain], chain, strict=False)
    ]
    scratch = [array(name, n, transient=True) for chain in names for name in chain[:-1]]
    buffers = {b.name: b for b in [array("a", n), *scratch, *(array(chain[-1], n) for chain in names)]}
    live = {"a", names[0][-1], names[1][-1]}
    assert partition(items, buffers, live) == [[*range(len(items))]]


@pytest.mark.parametrize("factor", ["j_1", load("j_1", "i")], ids=["parameter", "array"])
def test_iterators_of_shared_loops_take_no_name_of_others(factor: Expr | str) -> None:
    shape = {"i": 8, "j": 5}
    example = nest(
        "example", [array("x", 8, 5), array("y", 8, 5), array("t", 8, 5, transient=True), array("j_1", 8)],
        loops(shape, assign(load("t", "i", "j"), load("x", "i", "j"))),
        loops(shape, assign(load("y", "i", "j"), mul(factor, load("t", "i", "j")))),
        j_1=3,
    )  # fmt: skip
    fused = fuse_outermost(example)
    assert fused is not None and "j_1" not in {lp.iterator for lp in fused.loops()}
    memory = random_memory(example, np.random.default_rng(0))
    np.testing.assert_array_equal(interpret(fused, memory)["y"], interpret(example, memory)["y"])


def test_scratch_of_one_iteration_takes_no_name_of_an_argument() -> None:
    example = nest(
        "example", [array("x", 8), array("y", 8), array("t_here", 8), array("t", 8, transient=True)],
        loop("i", 8, assign(load("t", "i"), op("exp", load("x", "i")))),
        loop("i", 8, assign(load("y", "i"), mul(load("t", "i"), load("t_here", "i")))),
    )  # fmt: skip
    merged = combine("merge", example)
    assert len(merged.body) == 1 and merged.arguments == example.arguments
    memory = random_memory(example, np.random.default_rng(0))
    np.testing.assert_array_equal(interpret(merged, memory)["y"], interpret(example, memory)["y"])
