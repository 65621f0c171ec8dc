"""Medians with distribution-free intervals.

Runtimes are skewed and heavy-tailed, so means and normal intervals mislead; following Hoefler and
Belli, "Scientific Benchmarking of Parallel Computing Systems" (SC'15, doi 10.1145/2807591.2807644),
the interval of a median is read off the order statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

Interval = tuple[float, float]
CONFIDENCE = 0.95


@lru_cache(maxsize=4096)
def _rank(n: int) -> int:
    """The largest j >= 1 with P(Binomial(n, 1/2) < j) <= (1 - CONFIDENCE) / 2; 1 if there is none."""
    tail = (1 - CONFIDENCE) / 2
    if n > 200:  # the normal approximation is exact to well under one rank here
        return max(1, math.floor(n / 2 - 1.96 * math.sqrt(n) / 2))
    below, j = 0.0, 0
    while below + math.comb(n, j) / 2**n <= tail:
        below += math.comb(n, j) / 2**n
        j += 1
    return max(1, j)


def median_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """(median, lo, hi): `lo` and `hi` are the order statistics that hold the true median with at
    least 95% (Conover, "Practical Nonparametric Statistics", 3rd ed., section 3.2).

    With fewer than six samples no pair of order statistics reaches 95%; (min, max) is returned and
    the number of samples, which is always reported beside it, says how much to trust it.
    """
    if not samples:
        raise ValueError("median_interval expected at least one sample, got none")
    ordered = sorted(samples)
    n = len(ordered)
    median = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    j = _rank(n)
    return median, ordered[j - 1], ordered[n - j]


def interval_of_runs(runs: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """(median, lo, hi) of samples from several processes, a sequence each: the median of their medians, and
    the interval of all samples together, widened to hold the median of every process. Memory layout and
    thread placement differ from process to process: more samples do not make that any surer.
    """
    medians = [median_interval(samples)[0] for samples in runs]
    median, _, _ = median_interval(medians)
    _, lo, hi = median_interval([sample for samples in runs for sample in samples])
    return median, min(lo, *medians), max(hi, *medians)


def relative_half_width(samples: Sequence[float]) -> float:
    """Half the width of the interval of the median, over the median."""
    median, lo, hi = median_interval(samples)
    return (hi - lo) / 2 / median if median > 0 else math.inf


def is_tie(a: Interval, b: Interval) -> bool:
    """Two medians whose intervals overlap cannot be told apart."""
    return a[0] <= b[1] and b[0] <= a[1]


def speedup_interval(baseline: Interval, candidate: Interval) -> Interval:
    """Interval of the ratio of medians baseline / candidate, from their 95% intervals.

    The ratio of opposite ends covers the true ratio with 95% to 99.4% when the two errors are
    independent (half-widths add, where errors add in quadrature) and with more when noise is
    shared. It holds 1 exactly when `is_tie` holds. See `paired_interval` for runs that took turns.
    """
    return baseline[0] / candidate[1], baseline[1] / candidate[0]


def paired_interval(baseline: Sequence[Sequence[float]], candidate: Sequence[Sequence[float]]) -> Interval:
    """Interval of the ratio baseline / candidate of samples that were taken in turn, by process: that of the
    median of the ratios of each turn. What slows the machine for longer than a turn slows both, and cancels.
    """
    _, lo, hi = interval_of_runs(
        [[b / c for b, c in zip(*turns, strict=True)] for turns in zip(baseline, candidate, strict=True)]
    )
    return lo, hi


def chances_of_best(n: int, k: int) -> list[float]:
    """That the i-th best (from 0) of n is the best of k drawn without replacement: C(n - 1 - i, k - 1) of
    C(n, k) draws."""
    chances = [k / n]
    for i in range(n - 1):
        chances.append(chances[-1] * max(0, n - k - i) / (n - 1 - i))
    return chances


def expected_best(best_first: Sequence[float], k: int) -> float:
    """The mean of the best of k of these values, drawn without replacement; of all where there are fewer.

    best_first: the values, from the best to the worst.
    """
    n = len(best_first)
    return math.fsum(v * c for v, c in zip(best_first, chances_of_best(n, min(k, n)), strict=True))
