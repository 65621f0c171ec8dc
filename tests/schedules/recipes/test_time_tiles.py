"""Steps of time go through the same rows together where every sweep finds what it would have found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nests.examples import accumulate, add, array, assign, load, loop, mul, nest
from nests.interpret import interpret, random_memory
from schedules.recipes.running import build, call, differences

from gnnperf.errors import NotApplicable
from gnnperf.nests import Expr, Loop, LoopNest, Node
from gnnperf.nests.ir import walk
from gnnperf.schedules.recipes import DEFAULTS, CppFunction, Recipe, apply, emit, time_recipes, time_tiles
from gnnperf.schedules.recipes.time_tiles import tile_time, time_loops

N, M, STEPS = 37, 11, 7


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small arrays need several tiles."""
    monkeypatch.setattr(time_tiles, "TILE_BYTES", 1)


def over_time(*body: Node, steps: int = STEPS) -> LoopNest:
    arrays = [array(name, N, M) for name in "ABC"] + [array("f", steps), array("w", N, M), array("s")]
    return nest("example", arrays, loop("t", steps, *body, independent=False))


def sweep(target: str, value: Expr, first: int = 1, last: int = N - 1, **rows: bool) -> Node:
    """value: with i, j for the row and the column."""
    columns = loop("j", M - 1, assign(load(target, "i", "j"), value), start=1)
    return loop("i", last, columns, start=first, **rows)


def rows(name: str, *offsets: int) -> Expr:
    return mul(0.3, add(*(load(name, add("i", offset), "j") for offset in offsets)))


def single(target: str, to: int, value: Expr) -> Node:
    """Of one row."""
    return loop("j", M, assign(load(target, to, "j"), value))


JACOBI = over_time(sweep("B", rows("A", -1, 0, 1)), sweep("A", rows("B", -1, 0, 1)))
TILED = {
    "two arrays in turn": (JACOBI, 2, (0, 1)),
    "into another and back": (
        over_time(sweep("B", rows("A", -1, 0, 1)), sweep("A", rows("B", 0))),
        2,
        (0, 1),
    ),
    "in place": (over_time(sweep("A", rows("A", -1, 0, 1), independent=False)), 1, (0,)),
    "only rows above, in place": (over_time(sweep("A", rows("A", -1, 0), independent=False)), 1, (0,)),
    "rows further away": (
        over_time(sweep("B", rows("A", -2, 0, 1), first=2), sweep("A", rows("B", 0, 3), last=N - 3)),
        4,
        (0, 3),
    ),
    "borders": (
        over_time(
            single("B", 0, load("f", "t")),
            sweep("B", add(rows("B", 0), rows("A", 0), mul(-1.0, rows("A", -1)))),
            sweep("A", add(rows("A", 0), rows("B", 1), load("w", "j", "j"))),
            single("A", N - 1, load("A", N - 2, "j")),
            loop("i", N, assign(load("A", "i", 0), load("A", "i", 1))),
        ),
        2,
        (0, 0, 1, 1, 2),
    ),
    "one that lags for a third": (
        over_time(sweep("B", rows("A", 1)), sweep("C", rows("B", 2), last=N - 2), sweep("A", rows("C", -1))),
        2,
        (0, 2, 1),
    ),
}

LOCAL = over_time(
    loop(
        "i",
        N - 1,
        loop(
            "j",
            M,
            assign(load("x"), mul(0.5, load("A", add("i", -1), "j"))),
            assign(load("B", "i", "j"), add(load("x"), load("A", add("i", 1), "j"))),
        ),
        start=1,
    ),
    sweep("A", rows("B", 0)),
)
TILED["a local scalar"] = (
    nest("local", [*LOCAL.buffers.values(), array("x", scope="local")], *LOCAL.body),
    2,
    (0, 1),
)

REFUSED = {
    "no time": nest("one", [array("A", N, M), array("B", N, M)], sweep("B", rows("A", 0))),
    "steps in any order": nest(
        "free", [array("A", N, M), array("B", N, M)], loop("t", STEPS, sweep("B", rows("A", 0)))
    ),
    "one row for all": over_time(sweep("B", load("A", 3, "j")), sweep("A", rows("B", 0))),
    "turned": over_time(sweep("B", rows("A", 0), last=M), sweep("A", load("B", "j", "i"), last=M)),
    "a sum over rows": over_time(
        loop("i", N, loop("j", M, accumulate(load("s"), load("A", "i", "j")))),
        sweep("A", mul(0.5, load("s"))),
    ),
    "another part in every step": over_time(sweep("A", load("A", "t", "j"))),
    "rows that are looked up": nest(
        "gathered",
        [array("A", N, M), array("B", N, M), array("at", N, dtype="int64")],
        loop(
            "t",
            STEPS,
            sweep("B", load("A", load("at", "i"), "j")),
            sweep("A", rows("B", 0)),
            independent=False,
        ),
    ),
    "far away": over_time(sweep("B", load("A", add("i", 30), "j"), last=5), sweep("A", rows("B", 0), last=5)),
    "columns on their own": nest(
        "columns",
        [array("A", N, M)],
        loop(
            "j",
            M,
            loop(
                "t",
                STEPS,
                loop(
                    "i", N - 1, assign(load("A", "i", "j"), rows("A", -1, 0, 1)), start=1, independent=False
                ),
                independent=False,
            ),
        ),
    ),
    "no rows": over_time(accumulate(load("s"), load("f", "t"))),
}


@pytest.mark.parametrize("name", TILED)
def test_a_step_is_as_far_behind_as_it_must_be(name: str) -> None:
    whole, shift, behind = TILED[name]
    (found,) = time_loops(whole)
    assert (found.shift, found.behind) == (shift, behind)


@pytest.mark.parametrize("steps", [1, 2, 3, STEPS, 100])
@pytest.mark.parametrize("name", TILED)
def test_results_stay_the_same(name: str, steps: int) -> None:
    before = TILED[name][0]
    after = tile_time(before, steps)
    memory = random_memory(before, np.random.default_rng(0))
    for backwards in (False, True):  # what may run in any order
        expected, got = (interpret(n, memory, backwards) for n in (before, after))
        for array_ in expected:
            np.testing.assert_array_equal(got[array_], expected[array_])


def test_rows_of_a_tile_go_through_some_steps_before_the_next() -> None:
    (steps,) = tile_time(JACOBI, 3).body
    assert isinstance(steps, Loop) and steps.step == 3
    (across,) = steps.body
    assert isinstance(across, Loop) and across.step == 2 * 3 and not across.independent
    (time,) = across.body
    assert isinstance(time, Loop) and len(time.body) == 2


def tile_rows(whole: LoopNest, steps: int) -> int:
    (outer,) = tile_time(whole, steps).body
    assert isinstance(outer, Loop)
    (across,) = outer.body
    assert isinstance(across, Loop)
    return across.step


def test_a_tile_and_what_it_moves_by_are_as_large_as_is_kept_in_caches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sweeps = N - 1  # from row 1 of B to row N - 2 of A, which is one behind
    monkeypatch.setattr(time_tiles, "TILE_BYTES", 2 * N * M * 8)  # all of A and B
    assert tile_rows(JACOBI, 3) == sweeps - 2 * 3
    monkeypatch.setattr(time_tiles, "TILE_BYTES", N * M * 8)
    assert tile_rows(JACOBI, 3) == sweeps // 2 - 2 * 3
    assert tile_rows(JACOBI, 8) == 2 * 8


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_loop_over_time_is_refused(name: str) -> None:
    assert not time_loops(REFUSED[name])
    with pytest.raises(NotApplicable, match="no loop over time"):
        tile_time(REFUSED[name], 4)


def test_without_steps_nothing_changes() -> None:
    assert tile_time(JACOBI, 0) is JACOBI
    assert tile_time(REFUSED["turned"], 0) is REFUSED["turned"]


def test_a_loop_inside_another_is_tiled() -> None:
    (time,) = JACOBI.body
    outer = nest("outer", list(JACOBI.buffers.values()), loop("o", 2, time, independent=False))
    assert len(time_loops(outer)) == 1
    loops = [n.iterator for n in walk(tile_time(outer, 2).body) if isinstance(n, Loop)]
    assert loops[0] == "o" and loops[3] == "t"


def twice(whole: LoopNest) -> LoopNest:
    outer = loop("o", 2, *whole.body, independent=False)
    return nest("twice", list(whole.buffers.values()), outer)


INSIDE = {f"{name}, twice": twice(TILED[name][0]) for name in ("two arrays in turn", "in place")}


@pytest.mark.parametrize("name", [*TILED, *INSIDE])
def test_what_is_emitted_computes_the_same(name: str, tmp_path: Path) -> None:
    whole = INSIDE[name] if name in INSIDE else TILED[name][0]
    functions, expected = [], interpret(whole, memory := random_memory(whole, np.random.default_rng(1)))
    for number, recipe in enumerate(
        (Recipe(order="row"), Recipe(order="rowtile", register_p=2), *DEFAULTS[:5])
    ):
        functions.append(emit(apply(Recipe(**{**vars(recipe), "time_tile": 3}), whole), f"tiled_{number}"))
    library = build(functions, tmp_path)
    for function in functions:
        assert isinstance(function, CppFunction)
        assert not differences(expected, call(library, function, whole, memory))


def test_steps_that_go_through_more_than_caches_hold_are_tiled_whatever_neighbours_do() -> None:
    def jacobi(size: int) -> LoopNest:
        parts = (sweep(to, rows(of, -1, 0, 1), last=size - 1) for to, of in ("BA", "AB"))
        return nest(
            "jacobi", [array(name, size, M) for name in "AB"], loop("t", 9, *parts, independent=False)
        )

    theirs = Recipe(order="rowtile", register_p=16)
    tiled = time_recipes(jacobi(30_000), theirs)  # 5 MB
    assert len(tiled) == 2 and all(recipe.time_tile for recipe in tiled)
    assert Recipe(**{**vars(tiled[0]), "time_tile": 0}) == theirs
    assert not time_recipes(jacobi(20_000), theirs)
    assert not time_recipes(REFUSED["a sum over rows"], theirs)
