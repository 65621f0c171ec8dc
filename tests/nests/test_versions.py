"""Scratch arrays that are filled anew are arrays of their own; nobody sees it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, mul, nest, op
from nests.interpret import interpret, random_memory
from nests.random_programs import random_program
from schedules.recipes.running import differences, has_single

from gnnperf.nests import LoopNest, Node, normalise
from gnnperf.nests.analysis import written
from gnnperf.nests.combine import combine
from gnnperf.nests.forward import forward_substitute
from gnnperf.nests.versions import Versions, with_versions

N = 8
BUFFERS = [*(array(name, N) for name in "xyz"), array("t", N, transient=True)]
FIRST = loop("i", N, assign(load("t", "i"), op("sqrt", load("x", "i"))))
READ = loop("i", N - 1, assign(load("y", "i"), op("sub", load("t", add("i", 1)), load("t", "i"))))
SECOND = loop("i", N, assign(load("t", "i"), mul(load("x", "i"), load("x", "i"))))
AGAIN = loop("i", N - 1, assign(load("z", "i"), mul(load("t", add("i", 1)), load("t", "i"))))


def versions(*body: Node) -> Versions:
    one = nest("example", BUFFERS, *body)
    found = with_versions(one.body, one.buffers, {"t"})
    assert_same(one, LoopNest("example", found.buffers, found.nodes))
    return found


def assert_same(one: LoopNest, other: LoopNest) -> None:
    memory = random_memory(one, np.random.default_rng(0))
    assert not differences(interpret(one, memory), interpret(other, memory), has_single(one))


def test_each_use_has_an_array() -> None:
    found = versions(FIRST, READ, SECOND, AGAIN)
    assert found.origins == {"t_1": "t"}
    assert [written(node) for node in found.nodes] == [{"t"}, {"y"}, {"t_1"}, {"z"}]
    nothing_stored = forward_substitute(found.nodes, found.buffers, recompute=True)
    assert [written(node) for node in nothing_stored] == [{"y"}, {"z"}]


def test_in_loops_over_time() -> None:
    found = versions(loop("k", 3, FIRST, READ, SECOND, AGAIN, independent=False))
    (over_time,) = found.nodes
    assert found.origins == {"t_1": "t"} and {"t", "t_1"} <= written(over_time)


@pytest.mark.parametrize(
    "body",
    {
        "one use": (FIRST, READ, AGAIN),
        "a part is left": (FIRST, READ, loop("i", N - 1, assign(load("t", "i"), 1.0)), AGAIN),
        "what was there is added to": (FIRST, READ, loop("i", N, accumulate(load("t", "i"), 1.0)), AGAIN),
        "what was there is changed": (
            FIRST, loop("i", N, assign(load("t", "i"), mul(2.0, load("t", "i")))), AGAIN,
        ),
        "under a condition": (
            FIRST, loop("i", N, assign(load("t", "i"), 1.0, guard=op("lt", load("x", "i"), 0.5))), AGAIN,
        ),
        "the last step's value": (FIRST, loop("k", 3, READ, SECOND, independent=False), AGAIN),
    }.values(),
)  # fmt: skip
def test_others_keep_theirs(body: tuple[Node, ...]) -> None:
    assert not versions(*body).origins


def test_whatever_the_program_the_results_are_the_same() -> None:
    renamed = 0
    for seed in range(300):
        program = random_program(Random(seed)).nest()
        own = {n for n, b in program.buffers.items() if b.transient and b.scope == "global" and b.shape}
        found = with_versions(program.body, program.buffers, own)
        renamed += len(found.origins)
        after = LoopNest("program", found.buffers, found.nodes)
        assert_same(program, after)
        for how in ("", "merge", "inline"):
            assert_same(program, combine(how, normalise(after)))
    assert renamed > 30
