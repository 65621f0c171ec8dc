"""What passes a condition is put one after the other in two steps, as in one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, expr, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.nests import Expr, LoopNest, Node, Statement
from gnnperf.schedules.recipes import DEFAULTS, apply, emit, filtered
from gnnperf.schedules.recipes.filtered import TOGETHER, skip_misses

N = 3 * TOGETHER + 11
X, Y, R, C = load("x", "i"), load("y", "i"), load("r"), load("c")
PASSES, LOCAL, OTHER = op("gt", X, 1.0), load("passes"), load("passes_too")
COUNT = accumulate(C, op("select", PASSES, 1, 0))


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtered, "FEWEST", 2 * TOGETHER)


def example(*statements: Node, n: int = N, start: int = 0, independent: bool = False) -> LoopNest:
    arrays = [array(name, N) for name in ("x", "y", "u", "v")]
    arrays += [array("c", dtype="int64"), array("at", N, dtype="int32"), array("total")]
    arrays += [array("r", scope="local"), array("passes", dtype="bool", scope="local")]
    arrays += [array("passes_too", dtype="bool", scope="local")]
    return nest(
        "example", arrays, assign(C, 0), loop("i", n, *statements, start=start, independent=independent)
    )


def kept(target: str, value: Expr, guard: Expr = PASSES) -> Statement:
    return assign(load(target, C), value, guard=guard)


FILTERS = {
    "one array": example(kept("u", X), COUNT),
    "under a guard": example(kept("u", X), replace(accumulate(C, 1), guard=PASSES)),
    "two arrays and places": example(kept("u", X), kept("v", mul(X, Y)), kept("at", expr("i")), COUNT),
    "a local that decides": example(
        assign(LOCAL, op("lt", add(X, Y), 2.0)), kept("u", X, LOCAL), accumulate(C, op("select", LOCAL, 1, 0))
    ),
    "a local that is kept": example(
        assign(R, mul(X, Y)),
        kept("u", R, op("gt", R, 1.0)),
        accumulate(C, op("select", op("gt", R, 1.0), 1, 0)),
    ),
    "a condition within a condition": example(
        assign(LOCAL, op("gt", X, 0.7)),
        assign(OTHER, op("lt", Y, 1.2), guard=LOCAL),
        kept("u", X, op("and", LOCAL, OTHER)),
        accumulate(C, op("select", op("and", LOCAL, OTHER), 1, 0)),
    ),
    "the place before": example(kept("u", X), COUNT, start=5),
    "counted first": example(COUNT, assign(load("u", op("sub", C, 1)), X, guard=PASSES)),
    "a part of what passes": example(kept("u", X), kept("v", Y, op("and", PASSES, op("lt", Y, 1.0))), COUNT),
    "summed up": example(replace(accumulate(load("total"), X), guard=PASSES), COUNT),
}  # fmt: skip


def same(one: LoopNest) -> bool:
    memory = random_memory(one, np.random.default_rng(7))
    before, after = interpret(one, memory), interpret(skip_misses(one), memory)
    return all(np.array_equal(before[name], after[name]) for name in memory)


@pytest.mark.parametrize("name", FILTERS)
def test_the_same_elements_are_kept_in_the_same_order(name: str) -> None:
    one = FILTERS[name]
    assert skip_misses(one) != one
    assert same(one)


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(example(kept("u", X), COUNT, n=2 * TOGETHER - 1), id="few elements"),
        pytest.param(example(kept("u", X), COUNT, independent=True), id="in any order"),
        pytest.param(example(kept("x", Y), COUNT), id="changes what decides"),
        pytest.param(example(assign(X, Y), kept("u", X), COUNT), id="stores more than locals"),
        pytest.param(example(kept("u", X, op("lt", X, 1.0)), COUNT), id="two conditions"),
        pytest.param(example(kept("u", X), accumulate(C, op("select", PASSES, 2, 0))), id="counts in twos"),
        pytest.param(
            example(kept("u", X, op("gt", X, C)), accumulate(C, op("select", op("gt", X, C), 1, 0))),
            id="the count decides",
        ),
        pytest.param(example(COUNT), id="only counts"),
        pytest.param(
            example(assign(R, op("exp", X)), kept("u", R), COUNT), id="would compute an exponential twice"
        ),
        pytest.param(example(kept("u", R), assign(R, X), COUNT), id="carries a local on"),
    ],
)  # fmt: skip
def test_left_as_it_is(one: LoopNest) -> None:
    assert skip_misses(one) == one


def test_emitted_code_keeps_the_same(tmp_path: Path) -> None:
    scheduled = {f"f{n}": apply(DEFAULTS[0], one) for n, one in enumerate(FILTERS.values())}
    functions = {name: emit(one, name) for name, one in scheduled.items()}
    branching = [n for n, f in zip(FILTERS, functions.values(), strict=True) if "b_hits" not in f.source]
    assert branching == ["summed up"]  # a sum needs no branch in the first place
    library = build(list(functions.values()), tmp_path)
    for (name, function), one in zip(functions.items(), FILTERS.values(), strict=True):
        memory = random_memory(one, np.random.default_rng(3))
        assert not differences(interpret(one, memory), call(library, function, scheduled[name], memory))
