"""From points in any space to an order of schedules: kernel regression of ln efficiency."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gnnperf.evaluation.rankers.policy import PolicyProposal
from gnnperf.evaluation.reference import Reference
from gnnperf.training import CorpusNest

UNKNOWN = math.log(0.5)
"""ln efficiency assumed of a schedule where it was not measured: one lucky measurement does not win."""
BANDWIDTHS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Tried on the validation nests; in units of the median distance between reference nests."""
TRIALS = 3
"""Candidates whose best the bandwidth is chosen by."""

Locate = Callable[[Sequence[CorpusNest]], NDArray[np.float32]]
"""b nests -> their points, f32[b, d]."""


class KernelRegression:
    """Schedules by their mean ln efficiency on the reference nests, weighted by exp(-distance / bandwidth)
    (Nadaraya-Watson). Distances are Euclidean.

    Args:
        reference: nests and measurements.
        points: f32[nests, d] of the reference nests.
        locate: gives the point of a query.
        bandwidth: in units of distance.
    """

    def __init__(
        self, reference: Reference, points: NDArray[np.float32], locate: Locate, bandwidth: float
    ) -> None:
        self.points, self.locate, self.bandwidth = points, locate, bandwidth
        self.schedules = reference.schedules
        self.log_efficiency = np.nan_to_num(reference.log_efficiency, nan=UNKNOWN)

    def __call__(self, query: CorpusNest, pool: Sequence[str]) -> PolicyProposal:
        distances = np.linalg.norm(self.points - self.locate([query])[0], axis=1)
        order = _order(distances, self.log_efficiency, self.bandwidth)
        return PolicyProposal([self.schedules[s] for s in order])


def choose_bandwidth(reference: Reference, points: NDArray[np.float32]) -> float:
    """The bandwidth with which the training nests serve the validation nests best: highest mean over these
    of the ln efficiency of the best of `TRIALS`."""
    train, validation = range(reference.train), reference.validation
    known = np.nan_to_num(reference.log_efficiency[: reference.train], nan=UNKNOWN)
    distances = np.linalg.norm(points[validation][:, None] - points[train][None], axis=2)
    unit = float(np.median(distances))

    def reached(bandwidth: float) -> float:
        best = []
        for row, measured, baseline in zip(
            distances,
            reference.log_efficiency[validation],
            reference.log_baseline[validation],
            strict=True,
        ):
            order = _order(row, known, bandwidth)
            tried = measured[order]
            best.append(max(baseline, *tried[~np.isnan(tried)][:TRIALS]))
        return float(np.mean(best))

    return max((unit * share for share in BANDWIDTHS), key=reached)


def _order(
    distances: NDArray[np.float32], log_efficiency: NDArray[np.float32], bandwidth: float
) -> NDArray[np.int64]:
    weights = np.exp(-(distances - distances.min()) / max(bandwidth, 1e-12))
    return np.argsort(-(weights @ log_efficiency), kind="stable")
