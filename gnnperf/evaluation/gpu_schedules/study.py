"""Leave one GPU out, leave one kernel out, leave both out: nothing of what is held out is learned from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.stats import spearmanr

from gnnperf.errors import InputError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.gpu.distance import nearest_distance
from gnnperf.evaluation.gpu_schedules.baselines import (
    boosted_trees,
    geometric_mean_rank,
    greedy_portfolio,
    nearest_gpu,
)  # fmt: skip
from gnnperf.frontends.gpu_kernels.tables import GpuTable, spaces_of
from gnnperf.nn.demand import ANY, LEVELS, RUNS, Demand
from gnnperf.retrieval.check import random_best
from gnnperf.retrieval.configurations import ConfigurationRanking, rank_configurations
from gnnperf.retrieval.few_shot import adapted
from gnnperf.training.demand import DemandFitSettings, fit_demand

GPU, KERNEL, BOTH = "gpu", "kernel", "gpu and kernel"
BASELINES = {
    "nearest": nearest_gpu, "geomean_rank": geometric_mean_rank, "portfolio": greedy_portfolio,
    "kernel_portfolio": greedy_portfolio, "trees": boosted_trees,
}  # fmt: skip
WHOLE_KERNEL = ("kernel_portfolio", "trees")
"""Baselines that use all tables of a kernel, as ours does; the others, those of the same search space."""
GPUS = 3
"""A space counts among those with a held-out GPU where it was measured on at least so many."""
K = 5
DRAWS = 20
"""How often the runs are drawn that an adapted prediction has seen."""
LEVEL = "80"
"""Of the intervals whose coverage is judged, in percent."""
NOMINAL = int(LEVEL) / 100


@dataclass(frozen=True)
class StudySettings:
    """seeds: networks that are averaged. fit: of each training. protocols: what is held out in turn."""

    seeds: int = 1
    fit: DemandFitSettings = field(default_factory=DemandFitSettings)
    protocols: tuple[str, ...] = (GPU, KERNEL, BOTH)


@dataclass(frozen=True)
class _Task:
    """Learn from `train`, rank `tables`; `own`: the kernel was measured elsewhere."""

    protocol: str
    train: tuple[GpuTable, ...]
    tables: tuple[GpuTable, ...]

    @property
    def own(self) -> bool:
        return self.protocol == GPU


def tasks(tables: Sequence[GpuTable], protocols: Sequence[str]) -> Iterator[_Task]:
    """What is trained and judged: each with other data."""
    wide = [table for _, mine in spaces_of(tables, GPUS) for table in mine]
    pairs = list(dict.fromkeys((t.kernel, t.gpu) for t in tables))
    for protocol in protocols:
        if protocol == KERNEL:
            for kernel in dict.fromkeys(k for k, _ in pairs):
                train = tuple(t for t in tables if t.kernel != kernel)
                yield _Task(protocol, train, tuple(t for t in tables if t.kernel == kernel))
            continue
        for kernel, gpu in pairs:
            judged = wide if protocol == GPU else tables
            mine = tuple(t for t in judged if (t.kernel, t.gpu) == (kernel, gpu))
            train = tuple(t for t in tables if t.gpu != gpu and (t.kernel == kernel) == (protocol == GPU))
            if mine and train:
                yield _Task(protocol, train, mine)


def evaluate_gpu_schedules(
    tables: Sequence[GpuTable], settings: StudySettings, advance: Callable[..., None]
) -> tuple[list[dict[str, Any]], dict[tuple[str, str], Float64[np.ndarray, " n"]]]:
    """Rows, one per task and table, and by (space, GPU) log2(measured / predicted runtime) of every
    configuration that ran on a GPU held out.

    advance: told of every task that is done. Raises InputError where there is nothing to hold out.
    """
    todo = list(tasks(tables, settings.protocols))
    if not todo:
        raise InputError(f"expected a search space that {GPUS} GPUs or more were measured on; there is none")
    rows, errors = [], {}
    for task in todo:
        advance(0, f"{task.protocol}: {task.tables[0].kernel}, {task.tables[0].gpu}")
        demands = [
            fit_demand(task.train, own=task.own, seed=seed, settings=settings.fit)
            for seed in range(settings.seeds)
        ]
        for table in task.tables:
            row, error = judge(task.protocol, table, task.train if task.own else (), demands)
            distance = nearest_distance(table.device, (t.device for t in task.train))
            rows.append({**row, "distance": distance})
            if task.protocol == GPU:
                errors[table.space, table.gpu] = error
        advance(1)
    return rows, errors


def judge(
    protocol: str, table: GpuTable, measured: Sequence[GpuTable], demands: Sequence[Demand]
) -> tuple[dict[str, Any], Float64[np.ndarray, " n"]]:
    """The row of a table, and the errors of its predicted runtimes."""
    ranking = rank_configurations(table, demands, measured)
    first, best = ranking.first(K), table.efficiency
    error = np.log2(table.runtime_ms[table.ok]) - ranking.log2_ms[table.ok]
    after = list(errors_after_runs(ranking, table))
    row: dict[str, Any] = {
        "held_out": protocol, "kernel": table.kernel, "space": table.space, "gpu": table.gpu,
        "configurations": len(table), "top1": best[first[0]], "top5": best[first].max(),
        "rank_correlation": _correlation(ranking, table),
        "runtime_mdape_0": float(np.median(np.abs(np.exp2(-error) - 1))),
        "runtime_mdape_5": float(np.mean([np.median(np.abs(np.exp2(-e) - 1)) for e in after])),
        "random_top1": random_best(best, 1), "random_top5": random_best(best, K),
    }  # fmt: skip
    for level in LEVELS:  # of |log2(measured / predicted)|: what intervals are made from
        row[f"error_{level}"] = float(np.quantile(np.abs(error), int(level) / 100))
        row[f"adapted_error_{level}"] = float(
            np.mean([np.quantile(np.abs(e), int(level) / 100) for e in after])
        )
    others = [t for t in measured if t.space == table.space]
    for name, baseline in BASELINES.items():
        chosen = baseline(table, measured if name in WHOLE_KERNEL else others, K) if others else []
        row[f"{name}_top1"] = best[chosen[0]] if chosen else None
        row[f"{name}_top5"] = best[chosen].max() if chosen else None
    return row, error


def errors_after_runs(ranking: ConfigurationRanking, table: GpuTable) -> Iterator[Float64[np.ndarray, " m"]]:
    """log2(measured / predicted) of what was not run, when RUNS configurations, drawn at random, have been;
    DRAWS times. All are judged where there are not more than that."""
    chance, ran = np.random.default_rng(0), np.flatnonzero(table.ok)
    log2_ms = np.log2(np.where(table.ok, table.runtime_ms, 1.0))
    for _ in range(DRAWS):
        seen = chance.choice(ran, min(RUNS, len(ran)), replace=False)
        left = np.setdiff1d(ran, seen) if len(ran) > RUNS else ran
        yield log2_ms[left] - adapted(ranking, seen, log2_ms[seen])[left]


def half_widths(rows: Sequence[Mapping[str, Any]], error: str) -> dict[str, dict[str, float]]:
    """By kernel, mean over its tables of held-out GPUs of the quantiles of |log2(measured / predicted)|; of
    ANY, over all tables of kernels held out on GPUs held out. error: begins the names of their columns."""
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["held_out"] in (GPU, BOTH):
            groups[ANY if row["held_out"] == BOTH else row["kernel"]].append(row)
    return {
        name: {level: float(np.mean([row[f"{error}_{level}"] for row in group])) for level in LEVELS}
        for name, group in groups.items()
    }


def covered(
    rows: Sequence[Mapping[str, Any]],
    errors: Mapping[tuple[str, str], Float64[np.ndarray, " n"]],
    level: str,
) -> dict[tuple[str, str], float]:
    """Share of each table's runtimes within the interval that the tables of all other GPUs say holds `level`
    percent of them."""
    kernels = {row["space"]: row["kernel"] for row in rows}
    found = {}
    for (space, gpu), error in errors.items():
        others = half_widths([row for row in rows if row["gpu"] != gpu], "error")
        if known := others.get(kernels[space]):
            found[space, gpu] = float(np.mean(np.abs(error) <= known[level]))
    return found


def summarise(
    rows: Sequence[Mapping[str, Any]],
    errors: Mapping[tuple[str, str], Float64[np.ndarray, " n"]],
    settings: StudySettings,
    source: str,
) -> BenchmarkResult:
    """Means over tables, each counting alike."""
    coverage = covered(rows, errors, LEVEL)
    complete = [
        {**r, "coverage80": coverage.get((r["space"], r["gpu"])) if r["held_out"] == GPU else None}
        for r in rows
    ]
    figures: dict[str, float] = {}

    def mean(figure: str, protocol: str, column: str, of: Callable[..., Any] = np.mean) -> None:
        values = [r[column] for r in complete if r["held_out"] == protocol and r[column] is not None]
        if values:
            figures[figure] = float(of(values))

    for name in ("top1", "top5"):
        mean(f"heldout_gpu_{name}", GPU, name)
    mean("heldout_gpu_min_top5", GPU, "top5", np.min)
    mean("heldout_gpu_rank_correlation", GPU, "rank_correlation")
    for name in ("random", *BASELINES):
        for k in ("top1", "top5"):
            mean(f"{name}_{k}", GPU, f"{name}_{k}")
    for count in (1, K):
        mean(f"tunable_with_network_at_{count}", GPU, f"top{count}")
        mean(f"tunable_portfolio_at_{count}", GPU, f"portfolio_top{count}")
    mean("heldout_kernel_top5", KERNEL, "top5")
    mean("heldout_kernel_random_top5", KERNEL, "random_top5")
    mean("heldout_both_top5", BOTH, "top5")
    mean("runtime_mdape_0", GPU, "runtime_mdape_0", np.median)
    mean("runtime_mdape_5", GPU, "runtime_mdape_5", np.median)
    mean("coverage80", GPU, "coverage80")
    return BenchmarkResult("gpu-schedules", figures, complete, {"data": source, **asdict(settings)})


def _correlation(ranking: ConfigurationRanking, table: GpuTable) -> float | None:
    """Spearman's, over the configurations that ran."""
    if table.ok.sum() < 3:
        return None
    return float(spearmanr(ranking.relative[table.ok], table.runtime_ms[table.ok]).statistic)
