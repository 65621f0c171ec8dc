"""Which transfers are trusted: the distance that held-out nests of other folds call for."""

from __future__ import annotations

import numpy as np
import pytest

from gnnperf.evaluation.confidence import Trust, trusted_distance
from gnnperf.evaluation.replay import Answer


def test_trust_ends_where_too_few_were_good() -> None:
    """Eighteen good ones, then two bad: 18 of 20 is 90%, 18 of 21 is not."""
    distance, good = np.arange(30.0), np.arange(30) < 18
    assert trusted_distance(distance, good, 0.9) == 19.0
    assert trusted_distance(distance, good | (distance > 19), 0.9) == 29.0  # only the two were bad
    assert trusted_distance(distance, good & (distance > 0), 0.9) == 17.0  # 17 of 18, 17 of 19 is too few


def test_nests_at_one_distance_are_trusted_together() -> None:
    """In whichever order they are: of thirty nests, ten at each distance, the farthest were bad."""
    distance, good = np.array([3.0, 1.0, 2.0] * 10), np.array([False, True, True] * 10)
    assert trusted_distance(distance, good, 0.9) == 2.0


@pytest.mark.parametrize("nests", [0, 9])
def test_few_nests_say_nothing(nests: int) -> None:
    assert trusted_distance(np.zeros(nests), np.ones(nests, dtype=bool), 0.9) == -np.inf


def answer(nest: int, fold: int, distance: float | None, seed: int = 0) -> Answer:
    return Answer("ours", nest, fold, seed, (), True, distance)


def test_a_fold_is_trusted_by_what_other_folds_say() -> None:
    """In fold 0 the near ones are good, in fold 1 none is: fold 0 finds no trust, fold 1 trusts its near."""
    answers = [answer(i, i % 2, float(i // 2)) for i in range(40)]
    good = np.array([[i % 2 == 0 and i // 2 < 10 for i in range(40)]])
    trust = Trust.of(answers, good, 0.9)
    assert [i for i in range(40) if trust.confident[0, i]] == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21]


def test_seeds_are_judged_apart_and_no_distance_is_no_trust() -> None:
    answers = [answer(i, i % 2, 0.0, seed=3) for i in range(40)]
    answers += [answer(i, i % 2, None, seed=4) for i in range(40)]
    trust = Trust.of(answers, np.ones((2, 40), dtype=bool), 0.9)
    assert trust.confident[0].all()
    assert trust.distance[1].min() == np.inf


def test_the_nearest_share_of_nests() -> None:
    trust = Trust.of([answer(i, i % 2, float(-i)) for i in range(10)], np.ones((1, 10), dtype=bool), 0.9)
    assert np.flatnonzero(trust.nearest(0.3)[0]).tolist() == [7, 8, 9]
    assert trust.nearest(1.0).all()
