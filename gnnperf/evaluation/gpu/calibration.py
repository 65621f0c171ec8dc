"""What a few runs on a GPU change: errors after them, over random draws of the runs."""

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
) -> Mapping[str, Mapping[int, float]]:
    """By family with more kernels than are run, and by number of runs, mean absolute percentage error of the
    others on a GPU that was left out. off, f64[n]: what predictions are off by, in ln.
    """
    chance = np.random.default_rng(seed)
    members = {name: torch.nonzero(traits.family == code)[:, 0] for code, name in enumerate(FAMILIES)}
    members = {name: rows for name, rows in members.items() if len(rows) > max(COUNTS)}
    if not members:
        return {}
    result: dict[str, dict[int, float]] = {name: {} for name in members}
    for count in COUNTS:
        found: dict[str, list[float]] = {name: [] for name in members}
        for _ in range(DRAWS):
            drawn = {name: rows[chance.permutation(len(rows))] for name, rows in members.items()}
            runs = torch.cat([rows[:count] for rows in drawn.values()])
            asked = torch.cat([rows[count:] for rows in drawn.values()])
            shift, _ = likeness.posterior(traits.take(runs), off[runs], traits.take(asked))
            errors = torch.abs(torch.exp(shift - off[asked]) - 1)
            for code, name in enumerate(FAMILIES):
                mine = traits.family[asked] == code
                if mine.any():
                    found[name].append(float(errors[mine].mean()))
        for name, means in found.items():
            result[name][count] = float(100 * np.mean(means))
    return result
