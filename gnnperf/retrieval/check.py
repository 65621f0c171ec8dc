"""How well a description of a tunable kernel ranks configurations that were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from gnnperf.frontends.gpu_kernels.tables import GpuTable
from gnnperf.measure.statistics import expected_best
from gnnperf.nn.demand import ANY, DemandBundle
from gnnperf.retrieval.configurations import rank_configurations

CONFIDENCE = 1.64
"""Standard deviations that a rank correlation has to lie above that of no relation."""


@dataclass(frozen=True)
class TableCheck:
    """What physics makes of the configurations that a table has.

    space, gpu: of the table. programs: different ones among its configurations. rank_correlation:
    Spearman's, of expected and measured runtimes; None below three that ran. first, best: efficiency (the
    best runtime of the table over its own, 0 where it failed) of the first proposal, and of the best of the
    first k; random_first, random_best: as expected of configurations drawn at random.
    """

    space: str
    gpu: str
    configurations: int
    programs: int
    rank_correlation: float | None
    first: float
    best: float
    random_first: float
    random_best: float

    @property
    def better(self) -> bool:
        """Than random: the first k reach more, and runtimes are in an order that is hardly by chance."""
        least = CONFIDENCE / math.sqrt(max(self.programs - 1, 1))
        return self.best > self.random_best and (self.rank_correlation or 0.0) > least


def check_tables(tables: Sequence[GpuTable], bundle: DemandBundle, k: int) -> list[TableCheck]:
    """Rank every table, of one kernel, as if nobody had measured it: by the count of resources, of which
    nothing is learned."""
    return [_check(table, bundle, k) for table in tables]


def _check(table: GpuTable, bundle: DemandBundle, k: int) -> TableCheck:
    from scipy.stats import spearmanr

    ranking, efficiency = rank_configurations(table, bundle.networks[ANY], ()), table.efficiency
    reached, correlation = efficiency[ranking.first(k)], None
    one = np.unique(table.programs[table.ok], return_index=True)[1]
    expected, measured = ranking.relative[table.ok][one], table.runtime_ms[table.ok][one]
    if len(one) > 2 and np.ptp(expected) > 0 and np.ptp(measured) > 0:
        correlation = float(spearmanr(expected, measured).statistic)
    return TableCheck(
        table.space, table.gpu, len(table), len(one), correlation, float(reached[0]), float(reached.max()),
        random_best(efficiency, 1), random_best(efficiency, k),
    )  # fmt: skip


def random_best(efficiency: Float64[np.ndarray, " n"], k: int) -> float:
    """Expected best efficiency of k different configurations drawn at random."""
    return expected_best(np.sort(efficiency)[::-1].tolist(), k)
