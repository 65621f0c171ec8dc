"""The order in which candidates are measured."""

from __future__ import annotations

import numpy as np

from gnnperf.retrieval.portfolio import portfolio

EYE = np.eye(5)


def test_the_first_is_the_best_predicted() -> None:
    assert portfolio(np.array([-0.5, -0.1, -0.9, -0.3, -2.0]), EYE, 5)[0] == 1


def test_every_schedule_comes_once() -> None:
    assert sorted(portfolio(np.zeros(5), EYE, 10)) == [0, 1, 2, 3, 4]
    assert len(portfolio(np.zeros(5), EYE, 2)) == 2
    assert len(portfolio(np.zeros(0), np.zeros((0, 3)), 2)) == 0


def test_a_double_of_the_first_waits_for_another_kind() -> None:
    """Schedules 0 and 1 are all but the same; 2 is predicted a little worse but errs on its own."""
    features = np.array([[0.0, 0.0], [0.0, 0.01], [1.0, 5.0], [2.0, 5.0]])
    predicted = np.array([-0.30, -0.31, -0.35, -3.0])
    assert portfolio(predicted, features, 3).tolist() == [0, 2, 1]


def test_it_is_the_same_every_time() -> None:
    rng = np.random.default_rng(1)
    predicted, features = -rng.random(40), rng.normal(size=(40, 6))
    assert portfolio(predicted, features, 10).tolist() == portfolio(predicted, features, 10).tolist()
