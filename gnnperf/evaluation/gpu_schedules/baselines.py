"""What ranking with prediction has to beat: simple ways to use what other GPUs measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from gnnperf.frontends.gpu_kernels.tables import Candidates, GpuTable
from gnnperf.nn.demand import likeness
from gnnperf.retrieval.configurations import ROWS, SLOWEST, choose_greedily, elsewhere

FLAT = (
    "cores", "fp32_lanes_per_core", "threads_per_core", "registers_per_core", "shared_bytes_per_core",
    "l2_bytes", "peak_gflops_fp32", "bandwidth_gbps", "boost_mhz", "warp_threads",
)  # fmt: skip


def nearest_gpu(table: GpuTable, others: Sequence[GpuTable], k: int) -> list[int]:
    """The k best configurations of the GPU most like this one that ran them."""
    known = [_known(table, other) for other in others]
    distance = [
        (-likeness(table.device, o.device), abs(_balance(table) - _balance(o)), o.gpu) for o in others
    ]
    for i in sorted(range(len(others)), key=lambda i: distance[i]):
        if known[i].any():
            return list(np.argsort(-known[i], kind="stable")[:k])
    return list(range(k))


def geometric_mean_rank(table: GpuTable, others: Sequence[GpuTable], k: int) -> list[int]:
    """The k configurations with the least geometric mean of their ranks on the other GPUs; one that a GPU
    did not run has the last rank there."""
    total = np.zeros(len(table))
    for other in others:
        known = _known(table, other)
        if known.any():
            rank = np.argsort(np.argsort(-known, kind="stable")) + 1.0
            total += np.log(np.where(known > 0, rank, len(table)))
    return list(np.argsort(total, kind="stable")[:k])


def greedy_portfolio(table: GpuTable, others: Sequence[GpuTable], k: int) -> list[int]:
    """Greedy choice by the mean over other GPUs of the best efficiency."""
    known = np.stack([_known(table, other) for other in others])
    return choose_greedily(known, np.full(len(others), 1 / len(others)), k)


def boosted_trees(table: GpuTable, others: Sequence[GpuTable], k: int) -> list[int]:
    """Trees on tuning parameters and datasheet values, flat."""
    chance = np.random.default_rng(0)
    rows, targets = [], []
    for other in others:
        ok = np.flatnonzero(other.ok)
        some = chance.choice(ok, min(ROWS, len(ok)), replace=False)
        rows.append(_flat(other)[some])
        targets.append(np.minimum(np.log2(other.runtime_ms[some] / other.best_ms), SLOWEST))
    trees = HistGradientBoostingRegressor(max_iter=200, early_stopping=False, random_state=0)
    with threadpool_limits(1, "openmp"):
        trees.fit(np.concatenate(rows), np.concatenate(targets))
    return list(np.argsort(trees.predict(_flat(table)), kind="stable")[:k])


def _known(table: GpuTable, other: GpuTable) -> Float64[np.ndarray, " n"]:
    """Efficiency on another GPU of this table's configurations; 0 where it failed or did not run."""
    return np.nan_to_num(elsewhere(table, other, other.efficiency))


def _balance(table: GpuTable) -> float:
    """log2 of FLOP per byte."""
    return math.log2((table.device.peak_gflops_fp32 or 1.0) / (table.device.bandwidth_gbps or 1.0))


def _flat(candidates: Candidates) -> Float64[np.ndarray, "n f"]:
    values = candidates.plan.values
    columns = [values[p].astype(float) for p in candidates.description.parameters]
    device = [np.full(len(candidates), math.log2(getattr(candidates.device, name) or 1.0)) for name in FLAT]
    return np.stack([*columns, *device], axis=1)
