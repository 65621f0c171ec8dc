"""Regret between nests, from measured schedules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnnperf.corpus.record import CorpusRecord
from gnnperf.nn.contrastive import REGRET_CAP

BASELINE = ""
"""Stands for "keep the baseline" among schedule ids."""


@dataclass(frozen=True)
class Relative:
    """A runtime as a share of the baseline that was timed interleaved with it.

    Shares, not seconds, are compared across measurements: machine speed drifts between processes,
    and the interleaved baseline drifts with it.
    """

    share: float
    low: float
    high: float

    def ties(self, other: Relative) -> bool:
        """Design 2: two medians whose intervals overlap."""
        return self.low <= other.high and other.low <= self.high


def regret_matrix(measurements: Sequence[Mapping[str, CorpusRecord]]) -> NDArray[np.float32]:
    """What it costs to run nest i with the schedule that is best for nest j.

    regret(i, j) = ln(runtime of i under the best schedule of j / best known runtime of i), in
    nats; the baseline counts as a known runtime of i, and is the schedule of j when nothing beat
    it there. Where several schedules tie for best on j, the best of them on j that was measured on
    i is taken. A tie with the best of i is 0, a failure is REGRET_CAP, so is anything worse.

    Args:
        measurements: of each of n nests, schedule id -> measurement.

    Returns:
        f32[n, n]; NaN where no best schedule of j was measured on i, and on the diagonal (a nest
        is not its own neighbour).
    """
    known = [relative_runtimes(of_nest) for of_nest in measurements]
    best = [min(runtimes.values(), key=lambda r: r.share) for runtimes in known]
    winners = [_winners(runtimes) for runtimes in known]
    regret = np.full((len(known), len(known)), np.nan, dtype=np.float32)
    for i, of_nest in enumerate(measurements):
        for j, schedules in enumerate(winners):
            if i != j:
                regret[i, j] = _regret(known[i], of_nest, best[i], schedules)
    return regret


def relative_runtimes(of_nest: Mapping[str, CorpusRecord]) -> dict[str, Relative]:
    """Schedule id -> runtime, of the schedules that worked, and of the baseline under `BASELINE`."""
    runtimes = {BASELINE: Relative(1.0, 1.0, 1.0)}
    for schedule, m in of_nest.items():
        if m.runtime_s and m.interval_s and m.baseline_s and m.baseline_interval_s:
            (low, high), (baseline_low, baseline_high) = m.interval_s, m.baseline_interval_s
            runtimes[schedule] = Relative(
                m.runtime_s / m.baseline_s, low / baseline_high, high / baseline_low
            )
    return runtimes


def regret_of(achieved: Relative, best: Relative) -> float:
    """ln(achieved runtime / best known runtime), in nats; 0 for a tie with the best (design 2)."""
    return 0.0 if achieved.ties(best) else max(0.0, math.log(achieved.share / best.share))


def _winners(runtimes: Mapping[str, Relative]) -> list[str]:
    """Schedules that tie with the best one, best first."""
    ranked = sorted(runtimes, key=lambda schedule: (runtimes[schedule].share, schedule))
    return [s for s in ranked if runtimes[s].ties(runtimes[ranked[0]])]


def _regret(
    known: Mapping[str, Relative],
    of_nest: Mapping[str, CorpusRecord],
    best: Relative,
    schedules: Sequence[str],
) -> float:
    for schedule in schedules:
        if schedule in known:
            return min(regret_of(known[schedule], best), REGRET_CAP)
        if schedule in of_nest:
            return REGRET_CAP
    return math.nan
