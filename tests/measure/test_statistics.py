from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from gnnperf.measure import Limits, Measurement, is_tie, median_interval, speedup_interval
from gnnperf.measure.measurement import pool

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


def test_several_processes_pool_to_the_median_and_the_envelope() -> None:
    runs = [
        Measurement.from_samples([t - 0.1, t, t + 0.1], [2 * t - 0.1, 2 * t, 2 * t + 0.1])
        for t in (1.0, 3.0, 2.0)
    ]
    pooled = pool(runs)
    assert (pooled.runtime_s, pooled.interval_s, pooled.samples) == (2.0, (0.9, 3.1), 9)
    assert (pooled.baseline_s, pooled.baseline_interval_s) == (4.0, (1.9, 6.1))
    assert (pooled.speedup, pooled.speedup_interval) == (2.0, (1.9 / 3.1, 6.1 / 0.9))
    failed = Measurement("timeout", detail="took longer than 1 s")
    assert pool([runs[0], failed]) == failed
    assert pool(runs[:1]) == runs[0]
    assert Limits().processes == 1


def test_faster_beyond_noise_means_the_whole_interval() -> None:
    assert Measurement.from_samples([0.9] * 6, [1.0] * 6).faster_beyond_noise
    touching = Measurement.from_samples([0.9] * 5 + [1.0], [1.0] * 6)
    assert (touching.speedup, touching.faster_beyond_noise) == (1.0 / 0.9, False)
    assert not Measurement.from_samples([0.9] * 6).faster_beyond_noise, "there was nothing to beat"
    assert not Measurement("timeout").faster_beyond_noise
