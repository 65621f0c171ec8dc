"""The order of candidates, by cases worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log

import numpy as np
import pytest
from retrieval.records import make_record, neighbour, recipe

from gnnperf.retrieval import RecipeCandidate, rank
from gnnperf.retrieval.ranking import (
    BANDWIDTH,
    FAILURE,
    LOOKED_AT,
    SHORTLIST,
    UNKNOWN,
    log_efficiencies,
)
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Neighbour


def ranked(neighbours: list[Neighbour], limit: int = 100) -> dict[int, float]:
    """Number of the recipe -> its score, in the order of the candidates."""
    return {c.schedule.tile_p // 32: c.score for c in rank(neighbours, limit)}


def test_one_neighbour_is_taken_at_its_word() -> None:
    scores = ranked([neighbour("a", 0.3, {1: 2.0, 2: 8.0, 3: 4.0})])
    assert list(scores) == [2, 3, 1]
    assert scores == pytest.approx({2: 0.0, 3: log(4 / 8), 1: log(2 / 8)})


def test_neighbours_count_by_their_likeness() -> None:
    """Weights 1 and 1/e; what a neighbour did not measure is worth half its best there."""
    near = neighbour("near", 0.10, {1: 4.0, 2: 2.0})
    far = neighbour("far", 0.10 + BANDWIDTH, {2: 3.0, 3: 6.0})
    w = exp(-1)
    expected = {
        1: (1 * log(4 / 4) + w * UNKNOWN) / (1 + w),
        2: (1 * log(2 / 4) + w * log(3 / 6)) / (1 + w),
        3: (1 * UNKNOWN + w * log(6 / 6)) / (1 + w),
    }
    scores = ranked([near, far])
    assert scores == pytest.approx(expected)
    assert list(scores) == [1, 3, 2]


def test_only_differences_of_distance_count() -> None:
    near, far = {1: 4.0, 2: 2.0}, {2: 3.0}
    here = ranked([neighbour("near", 0.0, near), neighbour("far", 0.02, far)])
    there = ranked([neighbour("near", 0.4, near), neighbour("far", 0.42, far)])
    assert here == pytest.approx(there)


def test_a_lucky_measurement_far_away_does_not_win() -> None:
    near = neighbour("near", 0.0, {1: 3.0, 2: 2.9})
    far = neighbour("far", 0.5, {9: 100.0})
    assert list(ranked([near, far])) == [1, 2, 9]


def test_a_failure_weighs_more_than_not_knowing() -> None:
    near = neighbour("near", 0.0, {1: 2.0, 2: 2.0})
    far = neighbour("far", 0.01, {2: None, 3: 1.0})
    scores = ranked([near, far])
    w = exp(-0.01 / BANDWIDTH)
    assert scores[1] == pytest.approx((log(2 / 2) + w * UNKNOWN) / (1 + w))
    assert scores[2] == pytest.approx((log(2 / 2) + w * FAILURE) / (1 + w))
    assert next(iter(scores)) == 1


def test_what_failed_wherever_it_was_tried_is_no_candidate() -> None:
    neighbours = [neighbour("a", 0.0, {1: None, 2: 1.5}), neighbour("b", 0.1, {1: None})]
    assert list(ranked(neighbours)) == [2]


def test_the_nearest_that_vouches_is_named() -> None:
    neighbours = [
        neighbour("nearest", 0.1, {1: None, 2: 3.0}),
        neighbour("second", 0.2, {1: 5.0, 2: 7.0}),
    ]
    candidates = {c.schedule: c for c in rank(neighbours, 10)}
    one, two = candidates[recipe(1)], candidates[recipe(2)]
    assert (one.neighbour, one.neighbour_kernel, one.distance) == ("digest-second", "second", 0.2)
    assert (two.neighbour, two.neighbour_kernel, two.distance) == ("digest-nearest", "nearest", 0.1)


def test_equal_scores_have_a_fixed_order() -> None:
    forwards = neighbour("a", 0.1, dict.fromkeys(range(1, 8), 2.0))
    backwards = replace(forwards, records=forwards.records[::-1])
    assert list(ranked([forwards])) == list(ranked([backwards]))


def test_limit_keeps_the_best() -> None:
    assert list(ranked([neighbour("a", 0.1, {n: float(n) for n in range(1, 8)})], limit=2)) == [7, 6]


def test_nothing_known_nothing_proposed() -> None:
    assert rank([], 5) == []
    assert rank([neighbour("a", 0.1, {})], 5) == []


def test_of_repeated_measurements_the_best_counts() -> None:
    records = [
        make_record("a", recipe(1), 2.0),
        make_record("a", recipe(1), None),
        make_record("a", recipe(1), 4.0),
        make_record("a", recipe(1), 3.0),
        make_record("a", recipe(2), 8.0),
    ]
    efficiencies = {speedup: efficiency for efficiency, speedup in log_efficiencies(records).values()}
    assert efficiencies == pytest.approx({4.0: log(4 / 8), 8.0: 0.0})


def test_very_slow_is_no_worse_than_failed() -> None:
    records = [make_record("a", recipe(1), 1e-6), make_record("a", recipe(2), 1.0)]
    assert min(efficiency for efficiency, _ in log_efficiencies(records).values()) == FAILURE


def test_schedules_of_other_kinds_are_passed_over() -> None:
    """A store may hold traces and configs too; they do not apply to nests of a DaCe program."""
    trace = replace(
        make_record("a", recipe(1), 9.0), schedule='{"kind":"trace","version":1}', schedule_kind="trace"
    )
    near = Neighbour(neighbour("a", 0.1, {}).nest, 0.1, (trace, make_record("a", recipe(2), 2.0)))
    assert ranked([near]) == pytest.approx({2: 0.0})


def test_the_head_has_the_last_word() -> None:
    """What neighbours measured says which candidates it is shown."""
    near = neighbour("near", 0.0, {1: 4.0, 2: 2.0})
    opinions = {1: -1.0, 2: 0.0}
    found = rank([near], 5, lambda recipes: np.array([opinions[r.tile_p // 32] for r in recipes]))
    assert [(c.schedule.tile_p // 32, c.score) for c in found] == [(2, 0.0), (1, -1.0)]


def test_only_what_can_be_tried_is_ranked() -> None:
    near = neighbour("near", 0.0, {1: 4.0, 2: 2.0, 3: 1.0})
    found = rank([near], 5, possible=lambda recipe: recipe.tile_p // 32 != 1)
    assert [c.schedule.tile_p // 32 for c in found] == [2, 3]


def numbers(found: Sequence[RecipeCandidate]) -> list[int]:
    return [candidate.schedule.tile_p // 32 for candidate in found]


def test_what_does_not_fit_is_no_candidate() -> None:
    near = neighbour("near", 0.0, {1: 8.0, 2: 4.0, 3: 2.0})
    opinions = {1: -inf, 2: 0.0, 3: -0.1}
    found = rank([near], 5, lambda recipes: np.array([opinions[r.tile_p // 32] for r in recipes]))
    assert sorted(numbers(found)) == [2, 3]
    assert all(np.isfinite(candidate.score) for candidate in found)
    assert rank([near], 5, lambda recipes: np.full(len(recipes), -inf)) == []


def test_the_head_is_shown_those_with_the_most_evidence() -> None:
    """Once, the best first; what it does not see is not tried, however many are wanted."""
    many = 2 * LOOKED_AT
    near = neighbour("near", 0.0, {n: float(n) for n in range(1, many + 1)})
    asked: list[list[int]] = []

    def predict(recipes: Sequence[Recipe]) -> np.ndarray:
        asked.append([recipe.tile_p // 32 for recipe in recipes])
        return np.array([recipe.tile_p for recipe in recipes]) / 1e6  # of the same opinion

    found = rank([near], many, predict)
    seen = list(range(many, many - LOOKED_AT, -1))
    assert asked == [seen]
    assert sorted(numbers(found), reverse=True) == seen
    assert sorted(numbers(found)[:SHORTLIST], reverse=True) == seen[:SHORTLIST]  # the portfolio
    assert numbers(found)[SHORTLIST:] == seen[SHORTLIST:]  # the others, by their scores
    assert len(rank([near], many)) == many  # without a head there is nothing to save


def test_a_head_that_is_sure_decides_the_order() -> None:
    """As far apart as its opinions are, nothing else counts."""
    near = neighbour("near", 0.0, {n: float(n) for n in range(1, 7)})
    wanted = [3, 1, 6, 2, 5, 4]
    found = rank([near], 6, lambda rs: np.array([-20.0 * wanted.index(r.tile_p // 32) for r in rs]))
    assert numbers(found) == wanted
    assert numbers(rank([near], 2, lambda rs: -20.0 * np.array([r.tile_p / 32 for r in rs]))) == [1, 2]
