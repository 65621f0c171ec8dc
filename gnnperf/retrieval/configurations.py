"""Which configurations of a tunable kernel to try first on a GPU, without touching it.

What is asked for is the expected best of the first k, over guesses of what this GPU is like: a network of
what configurations demand of a GPU's resources (`Demand`), with what it got wrong on other GPUs added to it,
on all of them and on each; each other GPU as it was measured, its gaps filled by boosted trees of the tuning
parameters; and means of these. GPUs that are alike count more. Configurations that are one program are
measured once and proposed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from gnnperf.frontends.gpu_kernels.tables import Candidates, GpuTable
from gnnperf.nn.demand import Demand, likeness, mean_prediction

FAILED = 6.0
"""log2 of how much slower than the best a configuration that failed elsewhere is taken to be."""
SLOWEST = 4.0
"""What lies further from the best is learned from as this."""
RESIDUAL = 0.8
"""Share of the network's error on other GPUs that is expected here too, and `RESIDUAL_LIMIT`, the most."""
RESIDUAL_LIMIT = 2.0
PRIOR = 0.5
"""What no error counts among those on other GPUs, where a GPU of the same vendor has 1."""
ROWS = 3000
"""Rows of a table that trees learn from; drawn again where it has fewer."""


@dataclass(frozen=True)
class ConfigurationRanking:
    """Predictions for n candidates.

    log2_ms: expected runtime, in log2 of milliseconds. relative: what candidates are ranked by: log2 of the
    runtime over the best, up to a constant. guesses: the same per guess, 0 for the best; f64[g, n]. weights:
    of the guesses, summing to 1. features: of the candidates, where the guesses are so rough that like
    candidates will err alike. programs: number of the program that each candidate is; None: all differ.
    """

    log2_ms: Float64[np.ndarray, " n"]
    relative: Float64[np.ndarray, " n"]
    guesses: Float64[np.ndarray, "g n"]
    weights: Float64[np.ndarray, " g"]
    features: Float64[np.ndarray, "n f"] | None = None
    programs: Int64[np.ndarray, " n"] | None = None

    def first(self, k: int) -> list[int]:
        """The k candidates to try, in this order: each adds most to the expected best of them. Of those that
        are one program only the first; fewer than k where there are no more."""
        count = len(self.relative)
        some = np.arange(count) if self.programs is None else np.unique(self.programs, return_index=True)[1]
        if self.features is None:
            chosen = choose_greedily(np.exp2(-self.guesses[:, some]), self.weights, k)
        else:
            some = some[shortlist(self.guesses[:, some])]
            efficiency, likely = scenarios(self.guesses[:, some], self.weights, self.features[some])
            chosen = choose_greedily(efficiency, likely, k)
        return some[chosen].tolist()


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
            candidates count most. None: the kernel was never measured; without a network of its own it is
            ranked by the count of resources.
    """
    expected = expected_log2_ms(candidates, demands, measured)
    network, unfit = expected.network, FAILED * (candidates.physics["fits"] == 0)
    guesses, weights = [_from_best(network)], [1.0]
    features = None
    if measured:
        elsewhere, shares = _other_gpus(candidates, measured)
        corrected, average = _from_best(expected.corrected), _from_best(shares @ elsewhere)
        known = expected.known.any(axis=1)
        errors = network + RESIDUAL * expected.errors[known]
        likely = expected.weights[known]
        # Four views of this GPU count alike, and as much as each do all the others as they were measured,
        # and the network with what it got wrong on each.
        guesses += [_from_best(guess) for guess in (*errors, *elsewhere)]
        weights += [*(likely / likely.sum()), *shares]
        guesses += [corrected, average, _from_best(0.5 * (corrected + average))]
        weights += [1.0, 1.0, 1.0]
    else:
        features = _features(candidates)
        if demands[0].parameters is None:
            # Nobody measured the kernel: what networks learned of others orders it no better than the count
            # of resources does.
            guesses = [np.log2(candidates.physics["estimate_s"])]
    stacked = np.stack([_from_best(guess + unfit) for guess in guesses])
    share = np.array(weights) / sum(weights)
    return ConfigurationRanking(
        expected.corrected, stacked[-1], stacked, share, features, candidates.programs
    )


@dataclass(frozen=True)
class ExpectedRuntimes:
    """Of n candidates, in log2 of milliseconds. network: as it says. corrected: with what it got wrong on t
    other GPUs. errors: that on each of them, about its median there; 0 where nothing is `known`. weights: how
    much each GPU counts."""

    network: Float64[np.ndarray, " n"]
    corrected: Float64[np.ndarray, " n"]
    errors: Float64[np.ndarray, "t n"]
    known: Bool[np.ndarray, "t n"]
    weights: Float64[np.ndarray, " t"]


def expected_log2_ms(
    candidates: Candidates, demands: Sequence[Demand], measured: Sequence[GpuTable]
) -> ExpectedRuntimes:
    """What networks say, and what they got wrong on other GPUs; arguments as of `rank_configurations`."""
    network = mean_prediction(demands, candidates)
    errors = np.full((len(measured), len(network)), np.nan)
    for i, table in enumerate(measured):
        errors[i] = _errors(candidates, demands, table)
    known, errors = np.isfinite(errors), np.nan_to_num(errors)
    weights = np.array([likeness(candidates.device, table.device) for table in measured])
    mean = (weights @ errors) / (weights @ known + PRIOR)
    return ExpectedRuntimes(network, network + RESIDUAL * mean, errors, known, weights)


def _features(candidates: Candidates) -> Float64[np.ndarray, "n p"]:
    values = candidates.plan.values
    return np.stack([np.log2(values[p] + 1.0) for p in candidates.description.parameters], axis=1)


def _from_best(log2_runtime: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    return log2_runtime - log2_runtime.min()


def _errors(candidates: Candidates, demands: Sequence[Demand], table: GpuTable) -> Float64[np.ndarray, " n"]:
    """What the networks got wrong on another GPU; NaN where that did not run a candidate."""
    error = np.log2(np.where(table.ok, table.runtime_ms, 1.0))
    error = error - mean_prediction(demands, table)
    error = np.where(table.ok, error - np.median(error[table.ok]), RESIDUAL_LIMIT)
    return elsewhere(candidates, table, np.clip(error, -RESIDUAL_LIMIT, RESIDUAL_LIMIT))


def elsewhere(
    candidates: Candidates, table: GpuTable, values: Float64[np.ndarray, " m"]
) -> Float64[np.ndarray, " n"]:
    """Values of a table's configurations for the candidates that are the same programs, the mean where there
    are several; NaN where the table has none."""
    number = {identity: i for i, identity in enumerate(dict.fromkeys(table.identities))}
    sums = np.bincount(table.programs, values)
    counts = np.bincount(table.programs)
    of = np.array([number.get(identity, -1) for identity in candidates.identities])
    return np.where(of >= 0, (sums / counts)[of], np.nan)


def _other_gpus(
    candidates: Candidates, measured: Sequence[GpuTable]
) -> tuple[Float64[np.ndarray, "g n"], Float64[np.ndarray, " g"]]:
    """log2(runtime / best) of every candidate on each of the GPUs, as measured or as trees say, and how
    much each GPU counts."""
    devices = list({t.device.name: t.device for t in measured}.values())
    found = np.full((len(devices), len(candidates)), np.nan)
    for i, device in enumerate(devices):
        seen = np.stack([
            elsewhere(candidates, table, np.where(table.ok, _slowdown(table), FAILED))
            for table in measured if table.device.name == device.name
        ])  # fmt: skip
        count = np.isfinite(seen).sum(axis=0)
        found[i] = np.where(count > 0, np.nansum(seen, axis=0) / np.maximum(count, 1), np.nan)
    _fill(found, candidates, measured, [d.name for d in devices])
    share = np.array([likeness(candidates.device, d) for d in devices])
    return found, share / share.sum()


def _slowdown(table: GpuTable) -> Float64[np.ndarray, " n"]:
    """log2(runtime / best); 0 where a configuration failed."""
    return np.log2(np.where(table.ok, table.runtime_ms, table.best_ms) / table.best_ms)


def _fill(
    found: Float64[np.ndarray, "g n"],
    candidates: Candidates,
    measured: Sequence[GpuTable],
    names: Sequence[str],
) -> None:
    """Replace NaN in log2(runtime / best) on the GPUs of these names by what trees of the tuning parameters
    say. Every table gives as many rows, so that they count alike: weights would make the search for
    thresholds slow."""
    gaps = np.isnan(found)
    if not gaps.any():
        return
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    chance = np.random.default_rng(0)
    rows, targets = [], []
    for table in measured:
        ok = np.flatnonzero(table.ok)
        some = chance.choice(ok, ROWS, replace=len(ok) < ROWS)
        rows.append(_columns(table, names.index(table.device.name), len(names))[some])
        targets.append(np.minimum(_slowdown(table)[some], SLOWEST))
    trees = HistGradientBoostingRegressor(
        max_iter=200, learning_rate=0.1, max_leaf_nodes=31, min_samples_leaf=10, l2_regularization=1.0,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    with threadpool_limits(1, "openmp"):  # on a busy machine threads wait for one another, not for work
        trees.fit(np.concatenate(rows), np.concatenate(targets))
        for i, gap in enumerate(gaps):
            if gap.any():
                found[i, gap] = trees.predict(_columns(candidates, i, len(names))[gap])


def _columns(candidates: Candidates, gpu: int, gpus: int) -> Float64[np.ndarray, "n f"]:
    """Tuning parameters, and which GPU it is."""
    values = candidates.plan.values
    parameters = [values[p].astype(float) for p in candidates.description.parameters]
    which = [np.full(len(candidates), float(i == gpu)) for i in range(gpus)]
    return np.stack([*parameters, *which], axis=1)


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
