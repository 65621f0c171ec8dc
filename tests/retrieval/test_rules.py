"""Calls of libraries, and steps of time in tiles, are among the first candidates where they belong."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest

from gnnperf.nests import LoopNest
from gnnperf.retrieval.proposers import COPIES, LIBRARY, PLAIN, TIME, _with_rules
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.ranking import RecipeCandidate
from gnnperf.schedules.recipes import Recipe, copying_recipes, library_recipes, time_recipes


def product(n: int) -> LoopNest:
    value = mul(load("A", "i", "k"), load("B", "k", "j"))
    body = loops({"i": n, "j": n, "k": n}, accumulate(load("C", "i", "j"), value, init=0.0))
    return nest("product", [array(x, n, n) for x in "ABC"], body)


def chain(n: int) -> LoopNest:
    """(A B)^2 C, of which n^2 numbers are handed on."""
    first = accumulate(load("s", "i", "j"), mul(load("A", "i", "k"), load("B", "k", "j")), init=0.0)
    square = assign(load("t", "i", "j"), mul(load("s", "i", "j"), load("s", "i", "j")))
    second = accumulate(load("D", "i", "j"), mul(load("t", "i", "k"), load("C", "k", "j")), init=0.0)
    bodies = [loops({"i": n, "j": n, "k": n}, first), loops({"i": n, "j": n}, square)]
    arrays = [*(array(x, n, n) for x in "ABCD"), *(array(x, n, n, transient=True) for x in "st")]
    return nest("chain", arrays, *bodies, loops({"i": n, "j": n, "k": n}, second))


def over_time(rows: int) -> LoopNest:
    arrays = [array(x, rows, 1000) for x in "AB"]
    row = loop("j", 1000, assign(load("B", "i", "j"), add(load("A", "i", "j"), load("A", add("i", 1), "j"))))
    back = loops({"i": rows, "j": 1000}, assign(load("A", "i", "j"), load("B", "i", "j")))
    return nest("time", arrays, loop("t", 10, loop("i", rows - 1, row), back, independent=False))


def in_place(rows: int) -> LoopNest:
    arrays = [array("A", rows, 1000), array("T", rows, 1000, transient=True)]
    kept = loops({"i": rows - 1, "j": 1000}, assign(load("T", "i", "j"), load("A", add("i", 1), "j")))
    update = loops({"i": rows - 1, "j": 1000}, accumulate(load("A", "i", "j"), load("T", "i", "j")))
    return nest("in place", arrays, loop("t", 10, kept, update, independent=False))


def candidates(*schedules: Recipe) -> list[RecipeCandidate]:
    return [RecipeCandidate(s, -float(i), "digest", "kernel", 0.1) for i, s in enumerate(schedules)]


def measured(digest: str, *schedules: Recipe, distance: float = 0.1) -> Any:
    """A neighbour."""
    records = [SimpleNamespace(schedule_kind=s.kind, schedule=s.to_json()) for s in schedules]
    records.append(SimpleNamespace(schedule_kind="trace", schedule="{}"))
    return SimpleNamespace(nest=SimpleNamespace(digest=digest), records=records, distance=distance)


NEAR = measured("other")


def proposed(of: LoopNest, ranked: list[RecipeCandidate], k: int, *near: Any) -> list[RecipeCandidate]:
    task, graph = SimpleNamespace(nest=of), SimpleNamespace(digest="own")
    query: Any = SimpleNamespace(task=task, graph=graph, neighbours=near or (NEAR,))
    found: Query = query
    return _with_rules(ranked, found, k)


ROWS = [Recipe(order="row", register_p=p) for p in (1, 2, 4, 8)]


def test_a_product_that_no_neighbour_calls_is_called() -> None:
    found = proposed(product(70), candidates(*ROWS), 3)
    assert [c.schedule for c in found] == [*ROWS[:2], *library_recipes(product(70)), *ROWS[2:]]
    assert (found[2].neighbour_kernel, found[2].neighbour) == (LIBRARY, "own")


def test_what_neighbours_call_is_moved_to_the_front() -> None:
    theirs = Recipe(order="dot", library="blas")
    ranked = candidates(*ROWS, theirs)
    assert [c.schedule for c in proposed(product(70), ranked, 2)] == [ROWS[0], theirs, *ROWS[1:]]
    first = candidates(theirs, *ROWS)
    assert proposed(product(70), first, 2) == first


def test_products_that_hand_much_on_are_called_for_tiles_of_rows_too() -> None:
    assert [r.fuse > 0 for r in library_recipes(chain(600))] == [False, True]
    assert [r.fuse > 0 for r in library_recipes(chain(200))] == [False]  # caches hold it
    found = proposed(chain(600), candidates(*ROWS), 3)
    assert [c.schedule for c in found] == [ROWS[0], *library_recipes(chain(600)), *ROWS[1:]]
    theirs = Recipe(order="dot", library="blas", fuse=64)
    ranked = candidates(*ROWS, theirs, replace(theirs, fuse=1))
    assert [c.schedule for c in proposed(chain(600), ranked, 3)][:3] == [*ROWS[:2], theirs]
    whole = library_recipes(chain(600))[0]
    known = proposed(chain(600), candidates(*ROWS), 3, measured("own", whole))
    assert [c.schedule.fuse > 0 for c in known[:3]] == [False, False, True]


def test_what_libraries_are_worth_on_this_very_nest_is_known_once_it_was_measured() -> None:
    theirs = Recipe(order="dot", library="blas")
    ranked = candidates(*ROWS, theirs)
    assert proposed(product(70), ranked, 2, measured("own", ROWS[0], theirs)) == ranked
    for near in (measured("own", ROWS[0]), measured("other", theirs)):
        assert proposed(product(70), ranked, 2, near)[1].schedule == theirs


@pytest.mark.parametrize("of", [product(20), nest("none", [array("A", 9)], *[])])
def test_small_products_are_left_to_the_ranking(of: LoopNest) -> None:
    assert proposed(of, candidates(*ROWS), 3) == candidates(*ROWS)


def test_steps_over_large_arrays_are_tiled_with_the_best_of_the_neighbours_and_plainly() -> None:
    large = over_time(400)
    ranked = candidates(*ROWS)
    found = proposed(large, ranked, 4)
    assert [c.schedule for c in found] == [*ROWS[:2], *time_recipes(large, ROWS[0]), *ROWS[2:]]
    assert found[2].neighbour_kernel == TIME
    assert [c.schedule for c in proposed(large, ranked, 1)] == [time_recipes(large, ROWS[0])[0], *ROWS]
    assert proposed(over_time(100), ranked, 4) == ranked


def test_steps_that_neighbours_tile_are_taken_from_them() -> None:
    theirs = Recipe(order="dot", time_tile=4)
    ranked = candidates(*ROWS, theirs)
    assert [c.schedule for c in proposed(over_time(400), ranked, 2)] == [ROWS[0], theirs, *ROWS[1:]]
    assert proposed(over_time(400), ranked, 2, measured("own", theirs)) == ranked


def test_steps_that_can_go_from_copy_to_copy_do_so_in_one_candidate() -> None:
    ranked = candidates(*ROWS)
    small = proposed(in_place(100), ranked, 3)
    assert [c.schedule for c in small] == [*ROWS[:2], *copying_recipes(in_place(100)), *ROWS[2:]]
    assert small[2].neighbour_kernel == COPIES
    large = in_place(900)
    expected = [*time_recipes(large, ROWS[0]), *copying_recipes(large)]
    assert [c.schedule for c in proposed(large, ranked, 4)[1:4]] == expected
    assert copying_recipes(large)[0].time_tile


def test_the_plain_recipe_from_copy_to_copy_is_tried_beside_those_of_neighbours() -> None:
    others = Recipe(order="dot", combine="inline")
    (plain,) = copying_recipes(in_place(100))
    found = proposed(in_place(100), candidates(others, *ROWS), 2)
    assert [c.schedule for c in found] == [others, plain, *ROWS]
    ranked = candidates(*ROWS, plain)
    assert [c.neighbour_kernel for c in proposed(in_place(100), ranked, 2)[:2]] == ["kernel", "kernel"]
    assert proposed(in_place(100), ranked, 2, measured("own", plain)) == ranked


def test_where_no_nest_is_near_the_plain_recipe_is_tried_too() -> None:
    far, further = (measured("other", distance=d) for d in (0.2, 0.3))
    ranked = candidates(*ROWS)
    found = proposed(product(20), ranked, 3, further, far)
    assert [c.schedule for c in found] == [*ROWS[:2], Recipe(), *ROWS[2:]]
    assert found[2].neighbour_kernel == PLAIN
    assert proposed(product(20), ranked, 3, further, NEAR) == ranked
    known = candidates(Recipe(), *ROWS)
    assert proposed(product(20), known, 3, far) == known
