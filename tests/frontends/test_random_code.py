"""Random little programs: clean-up, independence and coverage never change what is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from frontends.interpret import Interpreter
from hypothesis import given
from hypothesis import strategies as st
from nests.examples import add, assign, load, loop, op

from gnnperf.frontends.dace.independence import mark_independent
from gnnperf.frontends.dace.tidy import tidy
from gnnperf.nests import Buffer, Const, Expr, Load, Loop, LoopNest, Node, Op, Statement, Symbol
from gnnperf.nests.coverage import flow
from gnnperf.nests.guards import absorb_guards
from gnnperf.nests.ir import walk

SIZE = 5
ARRAYS = ("x", "y")
SCALARS = ("s", "t", "u")
BUFFERS = {
    **{n: Buffer(n, "int64", (SIZE,), (1,)) for n in ARRAYS},
    **{n: Buffer(n, "int64", (), (), transient=True, scope="local") for n in SCALARS},
    "p": Buffer("p", "int64", (SIZE,), (1,), transient=True, scope="local"),
}


def index(iterators: tuple[str, ...]) -> st.SearchStrategy[Expr]:
    """A subscript in 0..SIZE - 1 (iterators run over 1..SIZE - 2)."""
    options: list[Expr] = [Const(2)]
    for name in iterators:
        options += [Symbol(name), Op("add", (Symbol(name), Const(1))), Op("sub", (Symbol(name), Const(1)))]
    return st.sampled_from(options)


def element(iterators: tuple[str, ...]) -> st.SearchStrategy[Load]:
    return st.one_of(
        st.sampled_from(SCALARS).map(Load),
        st.builds(lambda n, i: Load(n, (i,)), st.sampled_from((*ARRAYS, "p")), index(iterators)),
    )


def value(iterators: tuple[str, ...]) -> st.SearchStrategy[Expr]:
    leaf = st.one_of(element(iterators), st.integers(-2, 3).map(Const))
    pair = st.builds(lambda o, a, b: Op(o, (a, b)), st.sampled_from(("add", "sub", "min", "max")), leaf, leaf)
    return st.one_of(leaf, pair, st.builds(lambda a, b: Op("add", (a, b)), pair, leaf))


def condition(iterators: tuple[str, ...]) -> st.SearchStrategy[Expr]:
    kind = st.sampled_from(("lt", "le", "gt", "ge"))
    test = st.builds(lambda o, a, b: Op(o, (a, b)), kind, element(iterators), st.integers(-2, 4).map(Const))
    if iterators:
        end = st.one_of(index(iterators), st.integers(-2, 4).map(Const))
        test |= st.builds(lambda o, a, b: Op(o, (a, b)), kind, end, end)
    return st.one_of(test, test.map(lambda c: Op("not", (c,))))


def statement(iterators: tuple[str, ...]) -> st.SearchStrategy[Statement]:
    return st.builds(
        Statement,
        element(iterators),
        value(iterators),
        st.sampled_from((None, None, None, "add", "max")),
        st.none(),
        st.one_of(st.none(), st.none(), condition(iterators)),
    )


def two_arms(iterators: tuple[str, ...]) -> st.SearchStrategy[tuple[Node, ...]]:
    """An if with both arms, as the translator writes it."""

    def arms(test: Expr, target: Load, one: Expr, other: Expr) -> tuple[Node, ...]:
        held = Load("u")
        return (
            Statement(held, test),
            Statement(target, one, guard=held),
            Statement(target, other, guard=Op("not", (held,))),
        )

    return st.builds(arms, condition(iterators), element(iterators), value(iterators), value(iterators))


def block(depth: int, iterators: tuple[str, ...] = ()) -> st.SearchStrategy[tuple[Node, ...]]:
    one: st.SearchStrategy[tuple[Node, ...]] = statement(iterators).map(lambda s: (s,))
    options = [one, one, two_arms(iterators)]
    if depth:
        name = f"i{depth}"
        body = block(depth - 1, (*iterators, name))
        options.append(body.map(lambda b: (Loop(name, Const(1), Const(SIZE - 1), b, independent=False),)))
    prefix = st.sampled_from(((), initial("s"), initial("s", "t", "u")))
    parts = st.lists(st.one_of(options), min_size=1, max_size=5).map(lambda found: sum(found, ()))
    return st.builds(lambda a, b: a + b, prefix, parts)


def initial(*names: str) -> tuple[Node, ...]:
    """Values for some locals, so that many programs read none that has no value."""
    clear = Loop(
        "j", Const(0), Const(SIZE), (Statement(Load("p", (Symbol("j"),)), Const(1)),), independent=False
    )
    return (*(Statement(Load(n), Const(k)) for k, n in enumerate(names)), clear)


PROGRAMS = block(2)


def run(
    body: tuple[Node, ...], buffers: Mapping[str, Buffer], reverse: bool = False, scratch: int = 77
) -> dict[str, Any]:
    memory: dict[str, Any] = {n: np.arange(SIZE) * k - 2 for k, n in enumerate(ARRAYS, 1)}
    for name, buffer in buffers.items():
        if name not in memory:
            memory[name] = np.full(buffer.shape, scratch, np.int64)
    Interpreter(LoopNest("random", buffers, body), memory, reverse).run()
    return {n: memory[n].tolist() for n in ARRAYS}


@given(PROGRAMS)
def test_tidy_preserves_results(body: tuple[Node, ...]) -> None:
    if flow(body).exposed & {*SCALARS, "p"}:  # reads a local before it has a value: no meaning to preserve
        return
    buffers = dict(BUFFERS)
    assert run(tidy(body, buffers), buffers) == run(body, BUFFERS)


@given(PROGRAMS)
def test_absorbing_guards_preserves_results(body: tuple[Node, ...]) -> None:
    assert run(absorb_guards(body), BUFFERS) == run(body, BUFFERS)


def test_a_guard_that_narrows_a_loop_is_gone() -> None:
    j, x = Symbol("j"), Load("x", (Symbol("j"),))
    guard = Op("not", (Op("lt", (Op("sub", (Symbol("i"), j)), Const(1))),))
    inner = Loop("j", Const(0), Const(SIZE), (Statement(x, Const(1), guard=guard),))
    (outer,) = absorb_guards((Loop("i", Const(0), Const(SIZE), (inner,)),))
    assert isinstance(outer, Loop)
    assert outer.body == (replace(inner, stop=Symbol("i"), body=(Statement(x, Const(1)),)),)


REMAINDERS = [
    (op("eq", op("mod", add("i", "j"), 2), op("mod", "i", 2)), 2),
    (op("eq", op("mod", op("sub", op("sub", 3, "j"), "i"), 3), 2), 3),
    (op("eq", 0, op("mod", "j", 2)), 2),
    (op("ne", op("mod", add("i", "j"), 2), 0), 2),
    (op("not", op("eq", op("mod", add("j", 1), 2), op("sub", 1, op("mod", "i", 2)))), 2),
    (op("mod", "j", 2), 2),
    (op("not", op("mod", add("j", "i"), 3)), 3),
    (op("and", op("ge", "j", 2), op("eq", op("mod", "j", 3), 1)), 3),
]


@pytest.mark.parametrize(("guard", "n"), REMAINDERS)
@pytest.mark.parametrize(("start", "stop"), [(0, 4), (1, 5), (2, 5), (1, "i")])
def test_of_every_nth_iteration_no_other_is_run(guard: Expr, n: int, start: int, stop: int | str) -> None:
    inner = loop("j", stop, assign(load("x", "j"), add("i", "j"), guard=guard), start=start)
    (outer,) = absorb_guards((loop("i", SIZE, inner),))
    (every,) = (lp for lp in walk((outer,)) if isinstance(lp, Loop) and lp.iterator == "j")
    assert all(s.guard is None for s in every.body if isinstance(s, Statement))
    assert run((outer,), BUFFERS) == run((loop("i", SIZE, inner),), BUFFERS)
    if isinstance(stop, int) and (stop - start) % n == 0 and guard.name != "and":
        assert (every.start, every.stop) == (Const(0), Const((stop - start) // n))


@pytest.mark.parametrize(
    "guard",
    [
        op("eq", op("mod", "j", 2), "i"),  # of most i, none is
        op("ne", op("mod", "j", 3), 0),
        op("eq", op("mod", op("mul", 2, "j"), 4), 0),
        op("eq", op("mod", add("j", load("x", 0)), 2), 0),
        op("eq", op("mod", "j", "i"), 0),
    ],
)
def test_other_remainders_stay_conditions(guard: Expr) -> None:
    body = (loop("i", SIZE, loop("j", SIZE, assign(load("x", "j"), 1, guard=guard))),)
    assert absorb_guards(body) == body


@given(PROGRAMS)
def test_unexposed_scratch_does_not_matter(body: tuple[Node, ...]) -> None:
    exposed = flow(body).exposed & {*SCALARS, "p"}
    if not exposed:
        assert run(body, BUFFERS, scratch=77) == run(body, BUFFERS, scratch=-5)


@given(PROGRAMS)
def test_independent_loops_run_in_any_order(body: tuple[Node, ...]) -> None:
    ranges = {f"i{d}": (1, SIZE - 2) for d in (1, 2)}
    marked = mark_independent(body, BUFFERS, ranges)
    if not flow(body).exposed & {*SCALARS, "p"}:
        assert run(marked, BUFFERS, reverse=True) == run(body, BUFFERS)
