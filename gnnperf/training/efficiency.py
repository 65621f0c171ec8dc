"""How efficient every schedule was on every nest: what the retrieval head learns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gnnperf.corpus.record import CorpusRecord
from gnnperf.nn import REGRET_CAP
from gnnperf.schedules.recipes import Recipe
from gnnperf.training.regret import relative_runtimes

FAILURE = -REGRET_CAP
"""ln efficiency of a schedule that failed, and the least of anything."""


@dataclass(frozen=True)
class EfficiencyTable:
    """n nests, s recipes.

    recipes: the recipes that were measured on some nest, by schedule id, in sorted order.
    log_efficiency: f32[n, s], ln(best known runtime / runtime) in [FAILURE, 0]; NaN where the recipe was
        not measured or does not apply, which is found out without measuring. The baseline counts among
        what is known.
    """

    recipes: Mapping[str, Recipe]
    log_efficiency: NDArray[np.float32]


def efficiency_table(measurements: Sequence[Mapping[str, CorpusRecord]]) -> EfficiencyTable:
    """Of the measurements of each of n nests, schedule id -> measurement. Other schedules than recipes are
    left out."""
    found = {
        m.schedule_id: m.schedule
        for of_nest in measurements
        for m in of_nest.values()
        if m.schedule["kind"] == "recipe" and m.status != "not_applicable"
    }
    recipes = {schedule: Recipe.from_dict(found[schedule]) for schedule in sorted(found)}
    column = {schedule: at for at, schedule in enumerate(recipes)}
    table = np.full((len(measurements), len(column)), np.nan, dtype=np.float32)
    for row, of_nest in zip(table, measurements, strict=True):
        runtimes = relative_runtimes(of_nest)
        best = min(runtime.share for runtime in runtimes.values())
        for schedule, m in of_nest.items():
            if schedule in runtimes and schedule in column:
                row[column[schedule]] = max(FAILURE, math.log(best / runtimes[schedule].share))
            elif schedule in column and m.status != "not_applicable":
                row[column[schedule]] = FAILURE
    return EfficiencyTable(recipes, table)
