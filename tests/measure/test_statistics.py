from __future__ import annotations

import itertools
import math
import random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from gnnperf.measure import Limits, Measurement, Timing, is_tie, median_interval, speedup_interval
from gnnperf.measure.measurement import pool
from gnnperf.measure.statistics import chances_of_best, expected_best, paired_interval

runtimes = st.floats(1e-7, 1e3)
intervals = st.tuples(runtimes, runtimes).map(lambda pair: (min(pair), max(pair)))


@pytest.mark.parametrize(
    ("n", "lo", "hi"),
    # Ranks of the 95% interval of a median, as tabulated (Conover 1999; ISO 16269-7).
    [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (20, 6, 15), (50, 18, 33), (100, 40, 61)],
)
def test_ranks_are_the_tabulated_ones(n: int, lo: int, hi: int) -> None:
    samples = [float(i) for i in range(1, n + 1)]
    random.Random(0).shuffle(samples)
    assert median_interval(samples) == ((n + 1) / 2, lo, hi)


@pytest.mark.parametrize("n", [*range(6, 400), 1000, 2000])
def test_coverage_is_at_least_95_percent(n: int) -> None:
    _, lo, hi = median_interval([float(i) for i in range(1, n + 1)])
    assert binom.cdf(hi - 1, n, 0.5) - binom.cdf(lo - 1, n, 0.5) >= 0.95


def test_few_samples_give_their_range() -> None:
    assert median_interval([3.0]) == (3.0, 3.0, 3.0)
    assert median_interval([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    with pytest.raises(ValueError, match="at least one sample"):
        median_interval([])


@given(st.lists(runtimes, min_size=1, max_size=300))
def test_the_median_lies_in_its_interval(samples: list[float]) -> None:
    median, lo, hi = median_interval(samples)
    assert min(samples) <= lo <= median <= hi <= max(samples)


@given(intervals, intervals)
def test_a_tie_is_a_speedup_that_may_be_one(a: tuple[float, float], b: tuple[float, float]) -> None:
    lo, hi = speedup_interval(a, b)
    assert is_tie(a, b) == is_tie(b, a) == (lo <= 1 <= hi)


def test_the_speedup_interval_covers() -> None:
    """Of 2,000 pairs of noisy run sets, the interval misses the true ratio in less than 5%."""
    rng = random.Random(1)
    missed = 0
    for _ in range(2000):
        a = median_interval([2.0 * rng.lognormvariate(0, 0.1) for _ in range(15)])[1:]
        b = median_interval([1.0 * rng.lognormvariate(0, 0.3) for _ in range(15)])[1:]
        lo, hi = speedup_interval(a, b)
        missed += not lo <= 2.0 <= hi
    assert missed / 2000 < 0.05


def test_what_slows_both_of_a_turn_cancels() -> None:
    """A machine that is slower from turn to turn: the ratio of medians says little, that of turns all."""
    slower = [1.0, 3.0, 1.0, 2.5, 1.0, 2.0, 1.5, 1.0]
    found = Measurement.from_samples([s * 1.0 for s in slower], [s * 1.25 for s in slower])
    assert found.speedup == found.speedup_interval[0] == found.speedup_interval[1] == 1.25  # type: ignore[index]
    assert found.interval_s == (1.0, 3.0) and found.baseline_interval_s == (1.25, 3.75)
    apart = Measurement.from_samples(slower).over(Timing(1.25 * 1.25, (1.25, 3.75)))
    assert apart.speedup_interval == (1.25 / 3.0, 3.75 / 1.0) and not apart.faster_beyond_noise


def test_the_paired_interval_covers_whether_noise_is_shared_or_not() -> None:
    """Of 2,000 pairs of run sets each, the interval misses the true ratio in less than 5%."""
    rng = random.Random(2)
    for shared, own in ((0.5, 0.02), (0.0, 0.2), (0.2, 0.2)):
        missed = 0
        for _ in range(2000):
            machine = [rng.lognormvariate(0, shared) for _ in range(15)]
            candidate = [m * rng.lognormvariate(0, own) for m in machine]
            baseline = [2.0 * m * rng.lognormvariate(0, own) for m in machine]
            lo, hi = paired_interval([baseline], [candidate])
            missed += not lo <= 2.0 <= hi
        assert missed / 2000 < 0.05, (shared, own)


def test_runs_that_took_no_turns_are_not_paired() -> None:
    outclassed = Measurement.from_samples([1.0, 2.0, 3.0], [10.0, 20.0])
    assert outclassed.speedup_interval == (10.0 / 3.0, 20.0 / 1.0)


def test_several_processes_pool_to_the_median_and_hold_what_each_found() -> None:
    runs = [
        Measurement.from_samples([t - 0.1, t, t + 0.1], [2 * t - 0.1, 2 * t, 2 * t + 0.1])
        for t in (1.0, 3.0, 2.0)
    ]
    pooled = pool(runs)
    # Of nine samples in order, and of nine ratios, the second and the eighth.
    assert (pooled.runtime_s, pooled.interval_s, pooled.samples) == (2.0, (1.0, 3.0), 9)
    assert (pooled.baseline_s, pooled.baseline_interval_s) == (4.0, (2.0, 6.0))
    assert (pooled.speedup, pooled.speedup_interval) == (2.0, (4.1 / 2.1, 3.9 / 1.9))
    failed = Measurement("timeout", detail="took longer than 1 s")
    assert pool([runs[0], failed]) == failed
    assert pool(runs[:1]) == runs[0]
    assert Limits().processes == 1


def test_more_samples_do_not_make_processes_agree() -> None:
    """One of three is always slower: the speedup is not beyond what differs between them."""
    runs = [Measurement.from_samples([t] * 50, [1.0] * 50) for t in (0.9, 0.8, 1.1)]
    pooled = pool(runs)
    assert pooled.speedup == 1.0 / 0.9 and pooled.speedup_interval == (1.0 / 1.1, 1.0 / 0.8)
    assert not pooled.faster_beyond_noise and pool([runs[0], runs[1], runs[0]]).faster_beyond_noise


def test_samples_are_not_kept_with_what_is_recorded() -> None:
    found = Measurement.from_samples([1.0, 2.0], [3.0, 4.0])
    assert found.runs_s == ((1.0, 2.0),) and found.baseline_runs_s == ((3.0, 4.0),)
    assert not [key for key in found.to_dict() if "runs" in key]


def test_faster_beyond_noise_means_the_whole_interval() -> None:
    assert Measurement.from_samples([0.9] * 6, [1.0] * 6).faster_beyond_noise
    touching = Measurement.from_samples([0.9] * 5 + [1.0], [1.0] * 6)
    assert (touching.speedup, touching.faster_beyond_noise) == (1.0 / 0.9, False)
    assert not Measurement.from_samples([0.9] * 6).faster_beyond_noise, "there was nothing to beat"
    assert not Measurement("timeout").faster_beyond_noise


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (5, 2), (5, 5), (40_000, 48)])
def test_chances_of_the_best_of_some_drawn_at_random(n: int, k: int) -> None:
    some = range(min(n, 200))
    expected = [math.comb(n - 1 - i, k - 1) / math.comb(n, k) for i in some]
    found = chances_of_best(n, k)
    assert len(found) == n and [found[i] for i in some] == pytest.approx(expected, rel=1e-9)
    assert math.fsum(found) == pytest.approx(1)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_the_best_of_some_drawn_at_random_is_the_mean_over_all_draws(k: int) -> None:
    values = [1.0, 2.0, 5.0, 9.0]
    draws = [*itertools.combinations(values, min(k, 4))]
    assert expected_best(values, k) == pytest.approx(mean(min(draw) for draw in draws))
    assert expected_best(values[::-1], k) == pytest.approx(mean(max(draw) for draw in draws))
