"""Products of matrices that are written row by row are products of matrices in normal form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from nests.examples import Operand, accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import interpret, random_memory

from gnnperf.nests import Loop, LoopNest, Node, normalise
from gnnperf.nests.analysis import band
from gnnperf.nests.scratch_sums import KEPT_TERMS, STORED_TERMS, settled_sums

N, M, K = 5, 7, STORED_TERMS + 1
BUFFERS = [
    array("A", N, K), array("B", K, M), array("C", N, M), array("D", M, N), array("s", M), array("z", N, M),
    array("S", M, M), array("t", M, transient=True, scope="local"), array("p", N, dtype="int64"),
]  # fmt: skip


def built(*body: Node) -> LoopNest:
    return nest("example", BUFFERS, *body)


def rows(*body: Node, stop: Operand = N) -> Loop:
    return loop("i", stop, *body, independent=True)


def columns(body: Node, stop: Operand = M, iterator: str = "j") -> Loop:
    return loop(iterator, stop, body, independent=True)


def product(terms: int = K, buffer: str = "t", stop: Operand = M) -> Node:
    value = mul(load("B", "k", "j"), load("A", "i", "k"))
    inner = columns(accumulate(load(buffer, "j"), value), stop)
    return loop("k", terms, inner, independent=True)


ZERO = columns(assign(load("t", "j"), 0.0))
STORED = columns(assign(load("C", "i", "j"), load("t", "j")))


def same(one: LoopNest, other: LoopNest) -> None:
    memory = random_memory(one, np.random.default_rng(1))
    expected, found = interpret(one, memory), interpret(other, memory)
    for name, values in expected.items():
        if not one.buffers[name].transient:
            np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


def test_rows_of_a_product_are_a_product() -> None:
    one = built(rows(ZERO, product(), STORED))
    (made,) = normalise(one).body
    whole = accumulate(load("C", "i", "j"), mul(load("B", "k", "j"), load("A", "i", "k")), init=0.0)
    assert made == normalise(built(loops({"i": N, "k": K, "j": M}, whole))).body[0]
    same(one, normalise(one))


def test_what_is_made_of_a_sum_is_made_of_what_is_stored() -> None:
    value = op("max", op("add", load("t", "j"), load("s", "j")), 0.0)
    one = built(rows(ZERO, product(), columns(assign(load("C", "i", "j"), value))))
    last = normalise(one).body[-1]
    (statement,) = band(last).statements
    assert statement.target == load("C", "i", "j") and "t" not in normalise(one).buffers
    same(one, normalise(one))


def test_rows_may_be_columns_and_begin_at_the_diagonal() -> None:
    turned = built(rows(ZERO, product(), columns(assign(load("D", "j", "i"), load("t", "j")))))
    left: Operand = op("sub", M, "i")
    summed = accumulate(load("t", "j"), mul(load("B", "k", add("i", "j")), load("B", "k", "i")))
    triangle = built(
        rows(
            columns(assign(load("t", "j"), 0.0), left),
            loop("k", K, columns(summed, left), independent=True),
            columns(assign(load("S", "i", add("i", "j")), load("t", "j")), left),
            stop=M,
        )
    )
    for one in (turned, triangle):
        made = normalise(one)
        assert "t" not in made.buffers and all(band(node).is_perfect for node in made.body)
        same(one, made)


def test_several_sums_of_one_array_end_there() -> None:
    one = built(rows(ZERO, product(), product(STORED_TERMS), STORED))
    made = normalise(one)
    assert "t" not in made.buffers
    same(one, made)


def test_a_sum_may_change_before_it_is_stored() -> None:
    shifted = columns(accumulate(load("t", "j"), load("s", "j")))
    value = op("tanh", load("t", "j"))
    one = built(rows(ZERO, product(), shifted, columns(assign(load("C", "i", "j"), value))))
    made = normalise(one)
    assert "t" not in made.buffers and len(made.body) == 3
    same(one, made)


def test_what_goes_into_another_sum_has_a_row_for_every_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """relu(A @ B) @ E by rows: the scratch array of the first product goes into that of the activation."""
    n = KEPT_TERMS
    buffers = [
        array("A", N, n), array("B", n, M), array("E", M, 3), array("y", N, 3),
        array("t", M, transient=True), array("u", M, transient=True, scope="local"),
    ]  # fmt: skip
    last = mul(load("u", "k"), load("E", "k", "m"))
    one = nest(
        "layers", buffers,
        rows(
            ZERO,
            product(n),
            columns(assign(load("u", "j"), op("max", load("t", "j"), 0.0))),
            columns(assign(load("y", "i", "m"), 0.0), 3, "m"),
            loop("k", M, columns(accumulate(load("y", "i", "m"), last), 3, "m"), independent=True),
        ),
    )  # fmt: skip
    assert "u" in normalise(one).buffers and normalise(one).buffers["u"].shape == (M,), "B is in a cache"
    monkeypatch.setattr("gnnperf.nests.scratch_sums.CACHED_BYTES", 0)
    made = normalise(one)
    assert "t" not in made.buffers and made.buffers["u"].shape == (N, M)
    assert made.buffers["u"].transient and made.buffers["u"].scope == "global"
    assert len(made.body) == 3 and all(band(node).is_perfect for node in made.body)
    assert normalise(made) == made
    same(one, made)
    short = built(rows(ZERO, product(KEPT_TERMS - 1), columns(accumulate(load("C", "i", 0), load("t", "j")))))
    assert settled_sums(short.body, short.buffers)[0] == short.body


def test_what_is_multiplied_has_a_row_for_every_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """exp(A) @ E by rows, each over its sum."""
    buffers = [
        array("A", N, KEPT_TERMS), array("E", KEPT_TERMS, M), array("C", N, M),
        array("t", KEPT_TERMS, transient=True, scope="local"), array("r", transient=True, scope="local"),
    ]  # fmt: skip
    last = mul(load("E", "k", "j"), load("t", "k"))
    one = nest(
        "weights", buffers,
        rows(
            columns(assign(load("t", "k"), op("exp", load("A", "i", "k"))), KEPT_TERMS, "k"),
            columns(assign(load("C", "i", "j"), 0.0)),
            loop("k", KEPT_TERMS, columns(accumulate(load("C", "i", "j"), last)), independent=True),
            assign(load("r"), 0.0),
            columns(accumulate(load("r"), load("t", "k")), KEPT_TERMS, "k"),
            columns(assign(load("C", "i", "j"), op("div", load("C", "i", "j"), load("r")))),
        ),
    )  # fmt: skip
    assert len(normalise(one).body) == 1, "E is in a cache"
    monkeypatch.setattr("gnnperf.nests.scratch_sums.CACHED_BYTES", 0)
    made = normalise(one)
    assert [band(node).is_perfect for node in made.body] == [True, True, False]
    same(one, made)


SUM = loop("k", K, columns(accumulate(load("t", "j"), load("B", "k", "j"))))
OTHER = columns(assign(load("C", "i", "j"), op("add", load("t", "j"), load("C", "i", "j"))))
PART = columns(assign(load("C", "i", "j"), load("t", "j")), M - 1)
STAY = {
    "few terms": rows(ZERO, product(STORED_TERMS - 1), STORED),
    "no products": rows(ZERO, SUM, STORED),
    "what was stored before is read": rows(ZERO, product(), OTHER),
    "part of it is stored": rows(ZERO, product(), PART),
    "part of it is summed up": rows(ZERO, product(stop=M - 1), STORED),
    "another reads it": rows(
        ZERO, product(), STORED, columns(assign(load("z", "i", "j"), load("t", "j")))
    ),
    "all is stored in one place": rows(ZERO, product(), columns(assign(load("C", "i", 0), load("t", "j")))),
    "its place is looked up": rows(
        ZERO, product(), columns(assign(load("C", load("p", "i"), "j"), load("t", "j")))
    ),
    "it goes on from the last row": rows(product(), STORED),
    "somebody looks between": rows(
        ZERO, product(), columns(assign(load("z", "i", "j"), load("C", "i", "j"))), STORED
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STAY)
def test_other_sums_stay(name: str) -> None:
    one = built(STAY[name])
    assert settled_sums(one.body, one.buffers)[0] == one.body


def test_a_sum_that_is_rounded_when_it_is_stored_stays() -> None:
    one = built(rows(ZERO, product(), STORED))
    narrow = {**one.buffers, "C": replace(one.buffers["C"], dtype="float32")}
    assert settled_sums(one.body, narrow)[0] == one.body
    visible = {**one.buffers, "t": replace(one.buffers["t"], transient=False)}
    assert settled_sums(one.body, visible)[0] == one.body
    assert settled_sums(one.body, one.buffers)[0] != one.body
