"""The order of candidates, by cases worked by hand."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from retrieval.records import make_record, neighbour, recipe

from gnnperf.retrieval import rank
from gnnperf.retrieval.ranking import BANDWIDTH, FAILURE, HEAD_SHARE, UNKNOWN, log_efficiencies
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


def test_the_head_and_the_neighbours_both_count() -> None:
    near = neighbour("near", 0.0, {1: 4.0, 2: 2.0})
    opinions = {1: -1.0, 2: 0.0}
    found = rank([near], 5, lambda recipes: np.array([opinions[r.tile_p // 32] for r in recipes]))
    assert [c.schedule.tile_p // 32 for c in found] == [2, 1]
    evidence = {1: 0.0, 2: log(2 / 4)}
    for c in found:
        number = c.schedule.tile_p // 32
        expected = HEAD_SHARE * opinions[number] + (1 - HEAD_SHARE) * evidence[number]
        assert c.score == pytest.approx(expected)


def test_only_what_can_be_tried_is_ranked() -> None:
    near = neighbour("near", 0.0, {1: 4.0, 2: 2.0, 3: 1.0})
    found = rank([near], 5, possible=lambda recipe: recipe.tile_p // 32 != 1)
    assert [c.schedule.tile_p // 32 for c in found] == [2, 3]
