"""The order in which candidates are measured."""

from __future__ import annotations

import numpy as np

from gnnperf.retrieval.portfolio import _covariance, _errors, _given, portfolio

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


LINE = np.arange(6.0)[:, None]


def test_what_was_measured_is_not_measured_again() -> None:
    assert sorted(portfolio(np.zeros(6), LINE, 10, {1: -3.0, 4: -2.0})) == [0, 2, 3, 5]


def test_like_what_was_better_than_predicted_goes_first() -> None:
    """The level does not count: 0 and 5 are predicted alike, and 5 is the faster of both."""
    order = portfolio(np.zeros(6), LINE, 4, {0: 6.0, 5: 7.0}).tolist()
    assert order[0] == 4
    assert portfolio(np.zeros(6), LINE, 4, {0: 7.0, 5: 6.0})[0] == 1


def test_errors_are_those_that_were_measured() -> None:
    """Matheron's rule gives the known schedules their known errors in every scenario."""
    covariance = _covariance(LINE)
    predicted, measured = np.array([0.0, -0.2, -0.1, 0.0, 0.3, 0.0]), {0: -1.0, 3: -2.0}
    given = _given(_errors(covariance), covariance, predicted, measured)
    assert np.allclose(given[[0, 3]], [[0.5], [-0.5]], atol=1e-6)  # off by -1 and -2: the level is -1.5
