"""Which configurations of a tunable kernel to try first on a GPU, without touching it.

Three views of other GPUs' measurements are combined: a network of what configurations demand of a GPU's
resources (`Demand`), with what it got wrong on other GPUs added to it; each other GPU as it was measured,
its gaps filled by boosted trees of the tuning parameters; and boosted trees of physical features. Each view,
and every other GPU in it, is a guess of what this one is like; the k configurations are chosen so that one
of them is good whichever guess is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from gnnperf.frontends.gpu_kernels.tables import Candidates, GpuTable
from gnnperf.nn.demand import GENERIC, STATE, TIMES, Demand, likeness

FAILED = 6.0
"""log2 of how much slower than the best a configuration that failed elsewhere is taken to be."""
SLOWEST = 4.0
"""What lies further from the best is learned from as this."""
RESIDUAL = 0.8
"""Share of the network's error on other GPUs that is expected here too, and `RESIDUAL_LIMIT`, the most."""
RESIDUAL_LIMIT = 2.0
OTHER_GPUS = 1.5
"""Weight of all other GPUs together among the guesses, where a view of this GPU has 1."""
COUNTED = 2.0
"""Weight of the count of resources for a kernel that nobody measured, where the network has 1."""
DEVICE = (
    "cores", "fp32_lanes_per_core", "threads_per_core", "registers_per_core", "shared_bytes_per_core",
    "l2_bytes",
)  # fmt: skip
ROWS = 3000
"""Rows of a table that trees learn from; drawn again where it has fewer."""


@dataclass(frozen=True)
class ConfigurationRanking:
    """Predictions for n candidates.

    log2_ms: expected runtime, in log2 of milliseconds: of the network. relative: what candidates are
    ranked by: log2 of the runtime over the best, up to a constant. guesses: the same per guess, 0 for the
    best; f64[g, n]. weights: of the guesses, summing to 1. features: of the candidates, where the guesses
    are so rough that like candidates will err alike.
    """

    log2_ms: Float64[np.ndarray, " n"]
    relative: Float64[np.ndarray, " n"]
    guesses: Float64[np.ndarray, "g n"]
    weights: Float64[np.ndarray, " g"]
    features: Float64[np.ndarray, "n f"] | None = None

    def first(self, k: int) -> list[int]:
        """The k candidates to try, in this order: each adds most to the expected best of them."""
        if self.features is None:
            return choose_greedily(np.exp2(-self.guesses), self.weights, k)
        some = shortlist(self.guesses)
        efficiency, likely = scenarios(self.guesses[:, some], self.weights, self.features[some])
        return some[choose_greedily(efficiency, likely, k)].tolist()


def choose_greedily(
    efficiency: Float64[np.ndarray, "g n"], weights: Float64[np.ndarray, " g"], k: int
) -> list[int]:
    """Greedy choice of k out of n candidates by the expected best efficiency over g guesses; of those that
    add alike, the one with the highest efficiency by itself."""
    covered, chosen = np.zeros(len(efficiency)), list[int]()
    alone = 1e-6 * (weights @ efficiency)
    for _ in range(min(k, efficiency.shape[1])):
        gain = weights @ np.maximum(efficiency, covered[:, None])
        gain = gain + alone
        gain[chosen] = -np.inf
        chosen.append(int(gain.argmax()))
        covered = np.maximum(covered, efficiency[:, chosen[-1]])
    return chosen


def rank_configurations(
    candidates: Candidates, demands: Sequence[Demand], measured: Sequence[GpuTable]
) -> ConfigurationRanking:
    """Rank candidates.

    Args:
        candidates: of one kernel on one GPU.
        demands: networks for it, which count alike: of the kernel, or generic ones.
        measured: tables of the same kernel on other GPUs; those with the same configurations as the
            candidates count most. None: the kernel was never measured.
    """
    with threadpool_limits(1, "openmp"):  # on a busy machine threads wait for one another, not for work
        return _rank(candidates, demands, measured)


def _rank(
    candidates: Candidates, demands: Sequence[Demand], measured: Sequence[GpuTable]
) -> ConfigurationRanking:
    network = np.mean([d.predict(candidates) for d in demands], axis=0)
    guesses = [_from_best(network)]
    weights = [1.0]
    unfit = FAILED * (candidates.physics["fits"] == 0)
    if not measured:
        guesses[0] = guesses[0] + unfit
        if demands[0].parameters is None:
            # Nobody measured the kernel: the count of resources is a guess as good as the network's.
            counted = _from_best(np.log2(candidates.physics["estimate_s"]) + unfit)
            guesses += [counted, _from_best(0.5 * (guesses[0] + counted))]
            weights = [1.0, COUNTED, 1.0]
        share = np.array(weights) / sum(weights)
        return ConfigurationRanking(network, guesses[-1], np.stack(guesses), share, _features(candidates))
    residual, total = np.zeros(len(network)), np.full(len(network), 0.5)
    for table in measured:
        error, known = _errors(candidates, demands, table)
        if known.any():
            weight = likeness(candidates.device, table.device)
            residual, total = residual + weight * error, total + weight * known
            guesses.append(_from_best(network + RESIDUAL * error))
            weights.append(weight)
    corrected = _from_best(network + RESIDUAL * residual / total)
    elsewhere, shares = _other_gpus(candidates, measured)
    views = corrected, _from_best(shares @ elsewhere), _from_best(_physical_trees(candidates, measured))
    relative = np.mean(views, axis=0)
    guesses += [_from_best(relative), views[-1], *(_from_best(e) for e in elsewhere)]
    weights += [1.0, 1.0, *(OTHER_GPUS * shares)]
    return ConfigurationRanking(network, relative, np.stack(guesses), np.array(weights) / sum(weights))


def _features(candidates: Candidates) -> Float64[np.ndarray, "n p"]:
    values = candidates.plan.values
    return np.stack([np.log2(values[p] + 1.0) for p in candidates.description.parameters], axis=1)


def _from_best(log2_runtime: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    return log2_runtime - log2_runtime.min()


def _errors(
    candidates: Candidates, demands: Sequence[Demand], table: GpuTable
) -> tuple[Float64[np.ndarray, " n"], np.ndarray]:
    """What the network got wrong on another GPU (0 where that did not run a candidate), and where it did."""
    error = np.log2(np.where(table.ok, table.runtime_ms, 1.0))
    error = error - np.mean([d.predict(table) for d in demands], axis=0)
    error = np.where(table.ok, error - np.median(error[table.ok]), RESIDUAL_LIMIT)
    found = dict(zip(table.keys, np.clip(error, -RESIDUAL_LIMIT, RESIDUAL_LIMIT), strict=True))
    values = np.array([found.get(key, np.nan) for key in candidates.keys])
    return np.nan_to_num(values), np.isfinite(values)


def _other_gpus(
    candidates: Candidates, measured: Sequence[GpuTable]
) -> tuple[Float64[np.ndarray, "g n"], Float64[np.ndarray, " g"]]:
    """log2(runtime / best) of every candidate on each of the GPUs, as measured or as trees say, and how
    much each GPU counts."""
    devices = list({t.device.name: t.device for t in measured}.values())
    names = [d.name for d in devices]
    trees = _trees(measured, lambda table: _columns(table, names.index(table.device.name), len(names)))
    found = []
    for i, device in enumerate(devices):
        values = trees.predict(_columns(candidates, i, len(names)))
        for table in measured:
            if table.device.name == device.name:
                slower = np.where(
                    table.ok, np.log2(np.where(table.ok, table.runtime_ms, 1.0) / table.best_ms), FAILED
                )
                seen = dict(zip(table.keys, slower, strict=True))
                known = np.array([seen.get(key, np.nan) for key in candidates.keys])
                values = np.where(np.isfinite(known), known, values)
        found.append(values)
    share = np.array([likeness(candidates.device, d) for d in devices])
    return np.stack(found), share / share.sum()


def _columns(candidates: Candidates, gpu: int, gpus: int) -> Float64[np.ndarray, "n f"]:
    """Tuning parameters, and which GPU it is."""
    values = candidates.plan.values
    parameters = [values[p].astype(float) for p in candidates.description.parameters]
    which = [np.full(len(candidates), float(i == gpu)) for i in range(gpus)]
    return np.stack([*parameters, *which], axis=1)


def _physical_trees(candidates: Candidates, measured: Sequence[GpuTable]) -> Float64[np.ndarray, " n"]:
    """log2(runtime / best) by tuning parameters, physical features and what kind of device it is."""

    def columns(table: Candidates) -> Float64[np.ndarray, "n f"]:
        device, physics = table.device, table.physics
        flat = [np.log2(getattr(device, name) or 1.0) for name in DEVICE]
        flat.append(np.log2((device.peak_gflops_fp32 or 1.0) / (device.bandwidth_gbps or 1.0)))
        values = [table.plan.values[p].astype(float) for p in table.description.parameters]
        values += [np.log2(np.maximum(physics[name], 1e-12)) for name in (*GENERIC, *STATE)]
        values += [np.log2(physics[name] / physics["roofline_s"] + 1e-6) for name in TIMES]
        return np.stack([*values, *(np.full(len(table), value) for value in flat)], axis=1)

    return _trees(measured, columns).predict(columns(candidates))


def _trees(
    measured: Sequence[GpuTable], columns: Callable[[GpuTable], Float64[np.ndarray, "n f"]]
) -> HistGradientBoostingRegressor:
    """Fitted to log2(runtime / best); of every table as many rows, so that they count alike: weights would
    make the search for thresholds slow."""
    chance = np.random.default_rng(0)
    rows, targets = [], []
    for table in measured:
        ok = np.flatnonzero(table.ok)
        some = chance.choice(ok, ROWS, replace=len(ok) < ROWS)
        rows.append(columns(table)[some])
        targets.append(np.minimum(np.log2(table.runtime_ms[some] / table.best_ms), SLOWEST))
    trees = HistGradientBoostingRegressor(
        max_iter=200, learning_rate=0.1, max_leaf_nodes=31, min_samples_leaf=10, l2_regularization=1.0,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    return trees.fit(np.concatenate(rows), np.concatenate(targets))


DEVIATION = 1.0
"""Of log2 of a runtime from what is guessed for a kernel that was never measured."""
LENGTH_SCALE = 0.5
"""Mean squared distance of standardised features at which two errors are hardly alike any more."""
OWN_SHARE = 0.1
"""Part of an error's variance that not even a like configuration shares."""
DRAWS = 64
"""Errors drawn, each with its mirror image, so that no configuration is favoured by the draw."""
SHORTLIST = 400
"""Of every guess, the best that are considered."""


def shortlist(guesses: Float64[np.ndarray, "g n"]) -> Int64[np.ndarray, " s"]:
    """Positions of the best by each guess."""
    return np.unique(np.argsort(guesses, axis=1, kind="stable")[:, :SHORTLIST])


def scenarios(
    guesses: Float64[np.ndarray, "g s"],
    weights: Float64[np.ndarray, " g"],
    features: Float64[np.ndarray, "s f"],
) -> tuple[Float64[np.ndarray, "d s"], Float64[np.ndarray, " d"]]:
    """Efficiencies of s configurations in each of d scenarios, and how likely each is.

    guesses: log2 of the runtime over the best, with the weight of each. features: rows that are near for
    like configurations; columns are standardised here.
    """
    spread = features.std(axis=0)
    rows = ((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
    square = (rows**2).sum(axis=1)
    distance = (square[:, None] + square[None] - 2 * rows @ rows.T) / max(rows.shape[1], 1)
    alike = (1.0 - OWN_SHARE) * np.exp(-distance / LENGTH_SCALE) + (OWN_SHARE + 1e-6) * np.eye(len(rows))
    draws = np.random.default_rng(0).standard_normal((len(rows), DRAWS))
    errors = (DEVIATION * np.linalg.cholesky(alike) @ draws).T
    runtime = (guesses[:, None] + np.concatenate([errors, -errors])[None]).reshape(-1, len(rows))
    likely = np.repeat(weights, 2 * DRAWS) / (2 * DRAWS)
    return np.exp2(runtime.min(axis=1, keepdims=True) - runtime), likely
