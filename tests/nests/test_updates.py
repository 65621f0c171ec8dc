"""Nests that add to slices of an array do so in one sweep, with the same results."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.nests import LoopNest, Node, normalise
from gnnperf.nests.combine import combine
from gnnperf.nests.ir import Reduction
from gnnperf.nests.updates import joined_updates
from gnnperf.schedules.recipes import Recipe, apply, emit

N, M = 9, 11
BUFFERS = [
    array("x", N), array("y", N), array("f", N), array("A", N, M), array("B", N, M),
    array("Y", N, M, strides=(1, N)), array("T", N, M, transient=True),
]  # fmt: skip
ZERO = loop("i", N, assign(load("y", "i"), 0.0))
IN = loop("i", N, accumulate(load("y", "i"), load("f", "i")), start=1)
OUT = loop("i", N - 1, accumulate(load("y", "i"), mul(-1.0, load("f", add("i", 1)))))
LARGEST = accumulate(load("y", "i"), load("f", "i"), by="max")


def joined(*body: Node) -> tuple[Node, ...]:
    one = nest("example", BUFFERS, *body)
    made = joined_updates(one.body, one.buffers)
    memory = random_memory(one, np.random.default_rng(0))
    assert not differences(interpret(one, memory), interpret(nest("example", BUFFERS, *made), memory))
    return made


def test_what_goes_in_and_out_is_one_sum() -> None:
    into = op("select", op("ge", "y_0", 1), load("f", "y_0"), 0.0)
    out = op("select", op("lt", "y_0", N - 1), mul(-1.0, load("f", add("y_0", 1))), 0.0)
    assert joined(ZERO, IN, OUT) == (loop("y_0", N, assign(load("y", "y_0"), op("add", into, out))),)


def test_without_a_first_value_it_is_added_to_what_is_there() -> None:
    (made,) = joined(IN, OUT)
    assert made.body[0].reduce == "add"  # type: ignore[union-attr]


def test_what_does_not_matter_may_lie_between() -> None:
    other = loop("i", N, assign(load("x", "i"), load("f", "i")))
    assert len(joined(ZERO, other, IN, OUT)) == 2


@pytest.mark.parametrize("by", ["min", "max", "mul"])
def test_extremes_and_products_of_all_of_it_are_one_sweep(by: Reduction) -> None:
    first = loop("i", N, assign(load("y", "i"), load("x", "i")))
    (made,) = joined(first, loop("i", N, accumulate(load("y", "i"), load("f", "i"), by=by)))
    assert made == loop("y_0", N, assign(load("y", "y_0"), op(by, load("x", "y_0"), load("f", "y_0"))))


@pytest.mark.parametrize(
    "body",
    {
        "a border": (ZERO, assign(load("y", 0), 1.0)),
        "a value inside": (ZERO, loop("i", N - 1, assign(load("y", "i"), load("x", "i")), start=1)),
        "read between": (ZERO, loop("i", N, assign(load("x", "i"), load("y", "i"))), IN),
        "what is added has changed": (ZERO, loop("i", N, assign(load("f", "i"), load("x", "i"))), IN),
        "it adds what it has": (ZERO, loop("i", N - 1, accumulate(load("y", "i"), load("y", add("i", 1))))),
        "a first value that is not everywhere": (loop("i", N - 1, assign(load("y", "i"), 0.0)), IN),
        "the largest of a part": (ZERO, loop("i", N - 1, LARGEST)),
        "sums and the largest": (IN, loop("i", N, LARGEST)),
        "elements in another order": (ZERO, loop("i", N, accumulate(load("y", op("sub", N - 1, "i")), 1.0))),
    }.values(),
)  # fmt: skip
def test_others_stay(body: tuple[Node, ...]) -> None:
    assert joined(*body) == body


def random_updates(seed: int) -> LoopNest:
    chance = random.Random(seed)
    target = chance.choice("ABY")
    sources = [name for name in "ABT" if name != target]
    flux = loop("i", N, loop("j", M, assign(load("T", "i", "j"), mul(0.5, load(sources[0], "i", "j")))))
    body: list[Node] = [flux]
    for _ in range(chance.randint(2, 5)):
        a, b = chance.randint(0, 2), chance.randint(N - 2, N)
        c, d = chance.randint(0, 2), chance.randint(M - 2, M)
        moved = chance.randint(-a, N - b), chance.randint(-c, M - d)
        value = load(chance.choice(sources), add("i", moved[0]), add("j", moved[1]))
        change = chance.choice([assign, accumulate, accumulate])
        term = change(load(target, "i", "j"), mul(0.3, value))
        whole = chance.random() < 0.3
        rows, columns = ((0, N), (0, M)) if whole and moved == (0, 0) else ((a, b), (c, d))
        body.append(loop("i", rows[1], loop("j", columns[1], term, start=columns[0]), start=rows[0]))
        if chance.random() < 0.15:
            body.append(loop("j", M, accumulate(load(chance.choice("ABY"), 0, "j"), 0.25)))
    if chance.random() < 0.3:
        body = [loop("k", 3, *body, independent=False)]
    return normalise(nest("example", BUFFERS, *body))


@pytest.mark.parametrize("large", [0, 1 << 16])
def test_whatever_is_added_the_results_are_the_same(
    large: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled, too; `large` 0: with loops of their own for the first and last rows."""
    monkeypatch.setattr("gnnperf.nests.borders.LARGE", large)
    wholes = [random_updates(seed) for seed in range(100)]
    in_one = [w for w in wholes if joined_updates(w.body, w.buffers) != w.body]
    assert len(in_one) > 40
    recipes = [Recipe(order="row", register_p=2, combine=how) for how in ("merge", "inline")]
    functions = [emit(apply(r, w), f"f{n}_{r.combine}") for n, w in enumerate(in_one[:40]) for r in recipes]
    library = build(functions, tmp_path)
    for at, whole in enumerate(in_one):
        memory = random_memory(whole, np.random.default_rng(at))
        expected = interpret(whole, memory)
        for how in ("merge", "inline"):
            assert not differences(expected, interpret(combine(how, whole), memory)), (at, how)
        for function in functions[2 * at : 2 * at + 2]:
            assert not differences(expected, call(library, function, whole, memory)), at


def test_quarters_of_one_array_are_filled_in_one_sweep() -> None:
    """A transform that writes sums above and differences below."""
    pairs = [load("A", "i", mul(2, "j")), load("A", "i", add(mul(2, "j"), 1))]
    halves = [
        loop("i", N, loop("j", 5, assign(load("B", "i", "j"), op("add", *pairs)))),
        loop("i", N, loop("j", 5, assign(load("B", "i", add("j", 5)), op("sub", *pairs)))),
    ]
    whole = normalise(nest("example", BUFFERS, *halves))
    merged = combine("merge", whole)
    assert len(whole.body) == 2 and len(merged.body) == 1
    memory = random_memory(whole, np.random.default_rng(3))
    assert not differences(interpret(whole, memory), interpret(merged, memory))
