"""When a transfer may be trusted: distance of the evidence against what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnnperf.evaluation.replay import Answer

LEAST = 10
"""Nests that a trusted distance must rest on."""


def trusted_distance(distance: NDArray[np.float64], good: NDArray[np.bool_], wanted: float) -> float:
    """The largest distance within which transfers were good at least as often as wanted.

    Args:
        distance: f64[n] of held-out nests to their evidence.
        good: bool[n], whether what was transferred to them was good.
        wanted: share of good ones, in (0, 1].

    Returns:
        A distance; -inf where there is none that at least `LEAST` nests are within.
    """
    # Nests at one distance are trusted together or not at all.
    limits = np.unique(distance)
    within = distance[None] <= limits[:, None]
    count = within.sum(1)
    enough = np.flatnonzero(((within & good).sum(1) >= wanted * count) & (count >= LEAST))
    return float(limits[enough[-1]]) if enough.size else -np.inf


@dataclass(frozen=True)
class Trust:
    """Confidence in what a policy proposed: [seeds, nests], nests in corpus order.

    distance: f64, of the evidence. good: bool, whether the proposal was. confident: bool, whether that was
    expected: each fold by the distance that the nests of the other folds call for, of the same seed.
    """

    distance: NDArray[np.float64]
    good: NDArray[np.bool_]
    confident: NDArray[np.bool_]

    @staticmethod
    def of(answers: Sequence[Answer], good: NDArray[np.bool_], wanted: float) -> Trust:
        """From the answers of one policy to all nests, and how good they were: bool[seeds, nests]."""
        seeds = sorted({answer.seed for answer in answers})
        distance = np.full(good.shape, np.inf)
        fold = np.zeros(good.shape, dtype=np.int64)
        for answer in answers:
            at = seeds.index(answer.seed), answer.nest
            fold[at] = answer.fold
            if answer.distance is not None:
                distance[at] = answer.distance
        confident = np.zeros(good.shape, dtype=bool)
        for seed, number in {(s, f) for s in range(len(seeds)) for f in fold[s].tolist()}:
            others = fold[seed] != number
            limit = trusted_distance(distance[seed, others], good[seed, others], wanted)
            confident[seed, ~others] = distance[seed, ~others] <= limit
        return Trust(distance, good, confident)

    def nearest(self, share: float) -> NDArray[np.bool_]:
        """bool[seeds, nests]: the share of nests with the nearest evidence, per seed."""
        rank = self.distance.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        return rank < round(share * self.distance.shape[1])
