"""What a few runs on a GPU change: errors before and after, over random draws of the runs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from gnnperf.nn.runtime.adaptation import Likeness, Traits
from gnnperf.nn.runtime.columns import FAMILIES

COUNTS = (5, 20)
"""Runs of each family."""
DRAWS = 10


def errors_after_runs(
    likeness: Likeness, traits: Traits, off: Tensor, seed: int = 0
) -> Mapping[str, Mapping[int, tuple[float, float]]]:
    """By family with more kernels than are run, and by number of runs, mean absolute percentage errors of the
    others (before, after) on a GPU that was left out. off, f64[n]: what predictions are off by, in ln.
    """
    chance = np.random.default_rng(seed)
    members = {name: torch.nonzero(traits.family == code)[:, 0] for code, name in enumerate(FAMILIES)}
    members = {name: rows for name, rows in members.items() if len(rows) > max(COUNTS)}
    if not members:
        return {}
    result: dict[str, dict[int, tuple[float, float]]] = {name: {} for name in members}
    for count in COUNTS:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in members}
        for _ in range(DRAWS):
            drawn = {name: rows[chance.permutation(len(rows))] for name, rows in members.items()}
            runs = torch.cat([rows[:count] for rows in drawn.values()])
            asked = torch.cat([rows[count:] for rows in drawn.values()])
            shift, _ = likeness.posterior(traits.take(runs), off[runs], traits.take(asked))
            before, after = (
                torch.abs(torch.exp(s - off[asked]) - 1) for s in (torch.zeros_like(shift), shift)
            )
            for code, name in enumerate(FAMILIES):
                mine = traits.family[asked] == code
                if mine.any():
                    found[name].append((float(before[mine].mean()), float(after[mine].mean())))
        for name, pairs in found.items():
            mean = 100 * np.mean(pairs, axis=0)
            result[name][count] = float(mean[0]), float(mean[1])
    return result
