"""`x += A @ y` adds up in x; where somebody looks between, the sum has an array of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from nests.examples import accumulate, array, assign, load, loop, loops, mul, nest
from nests.interpret import interpret, random_memory

from gnnperf.nests import LoopNest, Node
from gnnperf.nests.ir import walk
from gnnperf.schedules.recipes import DEFAULTS, apply
from gnnperf.schedules.recipes.sums_in_place import sums_in_place

N, K = 7, 5
BUFFERS = [
    array("A", N, K), array("B", N, N), array("x", N), array("z", N), array("X", N, N), array("y", K),
    array("t", N, transient=True), array("T", N, N, transient=True),
]  # fmt: skip


def product(target: str = "t", init: float | None = 0.0, factor: Node | str = "y") -> Node:
    value = mul(load("A", "i", "k"), load("y", "k") if factor == "y" else load("x", "i"))
    return loops({"i": N, "k": K}, accumulate(load(target, "i"), value, init=init))


def added(stop: int = N) -> Node:
    return loop("i", stop, accumulate(load("x", "i"), load("t", "i")), independent=True)


def built(*body: Node) -> LoopNest:
    used = {b.name for b in BUFFERS if any(b.name in str(node) for node in walk(body))}
    return nest("example", [b for b in BUFFERS if b.name in used], *body)


def same(one: LoopNest, other: LoopNest) -> None:
    memory = random_memory(one, np.random.default_rng(1))
    expected, found = interpret(one, memory), interpret(other, memory)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


def test_a_sum_that_is_added_is_added_up_in_place() -> None:
    one = built(product(), added())
    assert sums_in_place(one).body == (product("x", None),)
    same(one, sums_in_place(one))
    for recipe in DEFAULTS[:4]:
        same(one, apply(recipe, one))


def test_axes_may_change_places() -> None:
    fill = loops({"a": N, "b": N}, accumulate(load("T", "a", "b"), load("B", "a", "b"), init=0.0))
    turned = loops({"i": N, "j": N}, accumulate(load("X", "j", "i"), load("T", "i", "j")))
    one = built(fill, turned)
    (made,) = sums_in_place(one).body
    assert made == loops({"a": N, "b": N}, accumulate(load("X", "b", "a"), load("B", "a", "b")))
    same(one, sums_in_place(one))


@pytest.mark.parametrize(
    "kept",
    [
        built(product(), added(N - 1)),  # not all of it
        built(product(init=1.0), added()),
        built(product(factor="x"), added()),  # the sum reads what it is added to
        built(product(), added(), loop("i", N, assign(load("z", "i"), load("t", "i")))),
        built(product(), loop("i", N, assign(load("z", "i"), load("x", "i"))), added()),
    ],
)
def test_other_sums_stay(kept: LoopNest) -> None:
    assert sums_in_place(kept) == kept


def test_a_sum_that_outlives_the_nest_stays() -> None:
    one = built(product(), added())
    visible = replace(one, buffers={**one.buffers, "t": replace(one.buffers["t"], transient=False)})
    assert sums_in_place(visible) == visible
