"""Every metric on a case worked by hand."""

from __future__ import annotations

import itertools
import math
from statistics import mean

import pytest

from gnnperf.evaluation.metrics import (
    average_peak_score,
    coverage,
    expected_search_reduction,
    expected_transfer_regret,
    geometric_mean,
    mape,
    mdape,
    mean_interval,
    pairwise_accuracy,
    per_group,
    search_reduction,
    top_k_score,
    transfer_efficiency,
    transfer_regret,
)
from gnnperf.training.regret import Relative


def took(share: float, half_width: float = 0.0) -> Relative:
    """A runtime, as a share of the baseline's."""
    return Relative(share, share - half_width, share + half_width)


BEST = took(0.25)
TRIED = [took(0.5), None, took(0.25), took(2.0)]
"""Twice as slow as the best; failed; the best; slower than the baseline."""


@pytest.mark.parametrize(
    ("k", "expected"),
    [(0, math.log(4)), (1, math.log(2)), (2, math.log(2)), (3, 0.0), (9, 0.0)],
)
def test_transfer_regret_is_of_the_best_of_the_first_k(k: int, expected: float) -> None:
    assert transfer_regret(TRIED, BEST, k) == pytest.approx(expected)
    assert transfer_efficiency(TRIED, BEST, k) == pytest.approx(math.exp(-expected))


def test_what_is_slower_than_the_baseline_is_not_taken() -> None:
    assert transfer_efficiency([took(2.0)], BEST, 1) == pytest.approx(0.25)
    assert transfer_efficiency([took(2.0)], took(1.0), 1) == 1.0


def test_a_tie_with_the_best_is_as_good_as_the_best() -> None:
    best = took(0.25, 0.01)
    assert transfer_regret([took(0.27, 0.01)], best, 1) == 0.0
    assert transfer_regret([took(0.275, 0.01)], best, 1) == pytest.approx(math.log(0.275 / 0.25))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_expectation_over_orders_is_the_mean_over_all_of_them(k: int) -> None:
    every = [transfer_regret(order, BEST, k) for order in itertools.permutations(TRIED)]
    assert expected_transfer_regret(TRIED, BEST, k) == pytest.approx(mean(every))
    near = expected_transfer_regret(TRIED, BEST, k, lambda regret: float(regret < 0.1))
    assert near == pytest.approx(min(1.0, k / 4))  # one of four is near the best


def test_nothing_to_choose_from_is_the_baseline() -> None:
    assert expected_transfer_regret([], BEST, 3) == pytest.approx(math.log(4))


def test_search_reduction_is_the_first_trial_that_matches() -> None:
    assert search_reduction(TRIED, took(0.5)) == 1
    assert search_reduction(TRIED, took(0.3)) == 3
    assert search_reduction(TRIED, took(0.24)) == math.inf
    assert search_reduction(TRIED, took(0.24, 0.01)) == 3  # a tie
    assert search_reduction(TRIED, took(1.0)) == 0  # the baseline matches


@pytest.mark.parametrize("target", [0.3, 0.5])
def test_random_search_needs_the_mean_over_all_orders(target: float) -> None:
    every = [search_reduction(order, took(target)) for order in itertools.permutations(TRIED)]
    assert expected_search_reduction(TRIED, took(target)) == pytest.approx(mean(every))


def test_random_search_by_hand() -> None:
    assert expected_search_reduction(TRIED, took(0.3)) == pytest.approx(5 / 2)  # one hit among four
    assert expected_search_reduction(TRIED, took(0.5)) == pytest.approx(5 / 3)  # two
    assert expected_search_reduction(TRIED, took(0.2)) == math.inf
    assert expected_search_reduction(TRIED, took(1.0)) == 0.0


def test_top_k_score() -> None:
    """Task 1 counts twice: best 1.0, the two best-predicted take 2.0 and 4.0. Task 2: best 3.0, found."""
    latencies, scores = [[1.0, 2.0, 4.0], [3.0, 6.0]], [[0.1, 0.9, 0.8], [0.7, 0.2]]
    assert top_k_score([2.0, 1.0], latencies, scores, 2) == pytest.approx((2 * 1 + 3) / (2 * 2 + 3))
    assert top_k_score([2.0, 1.0], latencies, scores, 3) == 1.0


def test_average_peak_score() -> None:
    """The best so far is 2, 2, 5, 5."""
    assert average_peak_score([2.0, 1.0, 5.0, 4.0], 4) == pytest.approx(14 / 4)
    assert average_peak_score([2.0, 1.0, 5.0, 4.0], 2) == 2.0


def test_pairwise_accuracy_leaves_ties_out() -> None:
    """Of three pairs, (a, b) is a tie; (a, c) is ordered right, (b, c) wrong."""
    intervals = [(0.9, 1.1), (1.05, 1.15), (1.9, 2.1)]
    assert pairwise_accuracy([1.0, 3.0, 2.0], [1.0, 1.1, 2.0], intervals) == 0.5
    assert pairwise_accuracy([1.0, 1.0, 1.0], [1.0, 1.1, 2.0], intervals) == 0.0
    assert math.isnan(pairwise_accuracy([1.0, 2.0], [1.0, 1.1], intervals[:2]))


def test_percentage_errors() -> None:
    """Off by 10%, 50% and 0%."""
    predicted, measured = [1.1, 1.0, 4.0], [1.0, 2.0, 4.0]
    assert mape(predicted, measured) == pytest.approx(20.0)
    assert mdape(predicted, measured) == pytest.approx(10.0)


def test_coverage_counts_the_ends_of_intervals() -> None:
    assert coverage([1.0, 2.0, 3.0, 4.0], [0.5, 2.0, 3.5, 3.0], [1.5, 2.5, 4.0, 3.9]) == 0.5


def test_metrics_per_group() -> None:
    found = per_group(mape, ["gpu", "cpu", "gpu"], [1.1, 1.0, 3.0], [1.0, 2.0, 2.0])
    assert found == {"cpu": pytest.approx(50.0), "gpu": pytest.approx(30.0)}


def test_geometric_mean() -> None:
    assert geometric_mean([0.25, 1.0, 4.0]) == pytest.approx(1.0)
    assert math.isnan(geometric_mean([]))


def test_an_interval_is_of_means_of_samples_with_replacement() -> None:
    """Of 0 and 1, half of all samples of two have mean 1/2, a quarter each 0 and 1; of many, it is about
    1.96 standard errors around their mean."""
    assert mean_interval([0.0, 1.0]) == (0.5, 0.0, 1.0)
    assert mean_interval([3.0] * 7) == (3.0, 3.0, 3.0)
    values = [float(i % 2) for i in range(400)]
    found, low, high = mean_interval(values)
    assert found == 0.5
    assert (found - low, high - found) == pytest.approx([1.96 * 0.5 / 20] * 2, rel=0.1)
    assert mean_interval(values) == (found, low, high)  # the same samples every time


def test_an_interval_moves_with_its_values() -> None:
    values = [0.1, 0.5, 0.2, 0.9, 0.4]
    found = mean_interval(values)
    assert mean_interval([2 * v + 1 for v in values]) == pytest.approx([2 * v + 1 for v in found])
    assert min(values) < found[1] < found[0] < found[2] < max(values)
