"""`gnnperf eval gpu-operators`: every GPU left out in turn, operators predicted on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gnnperf.devices import known_device
from gnnperf.errors import InputError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.gpu.calibration import COUNTS, errors_after_runs
from gnnperf.evaluation.gpu.distance import nearest_distance
from gnnperf.evaluation.gpu.flat import TreePredictor
from gnnperf.evaluation.metrics import coverage, mape, mdape
from gnnperf.nn.runtime import RuntimeHead, roofline_s
from gnnperf.nn.runtime.columns import FAMILIES, Rows
from gnnperf.nn.runtime.operator_table import read_operators
from gnnperf.training.leave_one_out import Held, calibrate, leave_one_out, left_out, test_or_train
from gnnperf.training.runtime import DEFAULT, RuntimeFitSettings

LEFT_OUT = ({"device": "Tesla P4", "family": "linear"},)
"""Other kernels ran in their training rows than in their test rows (median efficiency 0.24 against 0.75)."""
FIGURES = {
    "bmm": "bmm",
    "linear": "linear",
    "softmax": "softmax",
    "layernorm": "ln",
    "elementwise": "elementwise",
}
L4 = "NVIDIA L4"
SMALL_S, LEAST = 1e-4, 20
"""Kernels below are small: all that were measured count, whatever their split, where there are at least so
many of a family on a GPU."""
LEVEL = 0.8


@dataclass(frozen=True)
class OperatorSettings:
    """fit_on: splits of the source that models see, of the other GPUs."""

    data: Path
    fit_on: tuple[str, ...] = ("train",)
    seeds: tuple[int, ...] = (0, 1, 2)
    workers: int = 2
    config: RuntimeFitSettings = DEFAULT


@dataclass(frozen=True)
class Points:
    """What the plots show, one entry per prediction: names of device and family, seconds, and of each GPU how
    many doublings it lies from the nearest one that was fitted to."""

    device: NDArray[np.str_]
    family: NDArray[np.str_]
    measured_s: NDArray[np.float64]
    predicted_s: NDArray[np.float64]
    distance: Mapping[str, float]


def evaluate_operators(
    settings: OperatorSettings, advance: Callable[[int, str], None]
) -> tuple[BenchmarkResult, Points]:
    """Fit without every GPU, predict it, compare. Raises InputError when the data is not there."""
    path = settings.data / "gpu_operators.parquet"
    if not path.is_file():
        raise InputError(f"expected measured operators in {path}; give --data, or set GNNPERF_DATA")
    measured = read_operators(path)
    keep = measured.learned & ~left_out(measured, LEFT_OUT)
    rows = measured.rows({}, keep)
    split, names = measured.texts("split")[keep], measured.device[keep]
    fit_on, judge_on = np.isin(split, settings.fit_on), test_or_train(rows, split)
    small = rows.seconds.numpy() < SMALL_S
    devices = [int(d) for d in torch.unique(rows.device)]
    held = leave_one_out(
        rows, devices, fit_on, judge_on | small, settings.seeds, settings.config, settings.workers, advance
    )
    wide, held = held, [one.take(judge_on[one.rows]) for one in held]
    table, predicted = [], []
    for one, more in zip(held, wide, strict=True):
        others = [other for other in held if other.device != one.device]
        fitted = fit_on & (rows.device.numpy() != one.device)
        head = RuntimeHead((), calibrate(rows, others, fitted))
        name = str(names[one.rows[0]])
        found = _compare(rows, one, head, fitted)
        for family, error in _errors(rows, more.take(small[more.rows])).items():
            found[family]["small_kernel_mape"] = error
        if head.calibration.likeness is not None:
            runs = errors_after_runs(head.calibration.likeness, *one.errors(rows))
            for family, by_count in runs.items():
                found[family] |= {f"mape_after_{count}_runs": error for count, error in by_count.items()}
        table += [{"device": name, "family": family, **row} for family, row in found.items()]
        predicted.append(np.exp(one.log_predicted.mean(0)))
        advance(1, name)
    order = np.concatenate([one.rows for one in held])
    points = Points(
        names[order],
        np.array(FAMILIES)[rows.columns["family"].long().numpy()[order]],
        rows.seconds.numpy()[order],
        np.concatenate(predicted),
        _distances(np.unique(names).tolist()),
    )
    shown = {
        "fit_on": list(settings.fit_on),
        "seeds": list(settings.seeds),
        "rows_per_group": settings.config.rows_per_group,
        "left_out": [dict(pair) for pair in LEFT_OUT],
    }
    return BenchmarkResult("gpu-operators", _figures(table), table, shown), points


def _compare(
    rows: Rows, held: Held, head: RuntimeHead, fitted: NDArray[np.bool_]
) -> dict[str, dict[str, Any]]:
    """By family: errors of ours, and of what it stands beside, on one GPU."""
    chosen = rows.take(torch.from_numpy(held.rows))
    known = rows.take(torch.from_numpy(np.flatnonzero(fitted)))
    truth, family = chosen.seconds.numpy(), chosen.columns["family"].numpy()
    roofline, known_roofline = roofline_s(chosen.columns), roofline_s(known.columns).numpy()
    center = held.log_predicted.mean(0)
    reach = head.reach(chosen.columns, roofline, LEVEL).numpy()
    trees = TreePredictor(known).predict(chosen)
    result: dict[str, dict[str, Any]] = {}
    for code, name in enumerate(FAMILIES):
        mine = family == code
        if not mine.any():
            continue
        same = known.columns["family"].numpy() == code
        share = np.exp(np.median(np.log(known_roofline[same] / known.seconds.numpy()[same])))
        ours, bound = np.exp(center[mine]), roofline.numpy()[mine]
        low, high = np.exp(center[mine] - reach[mine]), np.exp(center[mine] + reach[mine])
        seeds = [mape(np.exp(log[mine]), truth[mine]) for log in held.log_predicted]
        result[name] = {
            "rows": int(mine.sum()),
            "mape": mape(ours, truth[mine]),
            "mdape": mdape(ours, truth[mine]),
            "seeds_mape": float(np.mean(seeds)),
            "coverage80": coverage(truth[mine], low, high),
            "roofline_mape": mape(bound, truth[mine]),
            "fitted_roofline_mape": mape(bound / share, truth[mine]),
            "trees_mape": mape(trees[mine], truth[mine]),
        }
    return result


def _errors(rows: Rows, one: Held) -> dict[str, float]:
    """By family with at least LEAST rows, the mean absolute percentage error."""
    family, truth = rows.columns["family"].numpy()[one.rows], rows.seconds.numpy()[one.rows]
    predicted = np.exp(one.log_predicted.mean(0))
    chosen = {name: family == code for code, name in enumerate(FAMILIES)}
    return {n: mape(predicted[mine], truth[mine]) for n, mine in chosen.items() if mine.sum() >= LEAST}


def _distances(names: Iterable[str]) -> dict[str, float]:
    """Of every GPU, the doublings between it and the one most like it."""
    devices = {name: known_device(name, {}) for name in names}
    return {
        name: nearest_distance(device, (other for o, other in devices.items() if o != name))
        for name, device in devices.items()
    }


def _figures(table: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    figures = {
        f"l4_{FIGURES[row['family']]}_mape": float(row["mape"]) for row in table if row["device"] == L4
    }
    for name, column in (
        ("mean_heldout_mape", "mape"),
        ("median_heldout_mape", "mape"),
        ("gpu_without_network_mape", "mape"),
        ("roofline_mean_heldout_mape", "roofline_mape"),
        ("fitted_roofline_mean_heldout_mape", "fitted_roofline_mape"),
        ("trees_mean_heldout_mape", "trees_mape"),
        ("coverage80", "coverage80"),
    ):
        values = [row[column] for row in table]
        figures[name] = float(np.median(values) if name.startswith("median") else np.mean(values))
    figures["worst_family_mape"] = max(float(row["mape"]) for row in table)
    if small := [row["small_kernel_mape"] for row in table if "small_kernel_mape" in row]:
        figures["small_kernel_mape"] = float(np.mean(small))
    for count in COUNTS:
        ratios = _ratios(table, f"mape_after_{count}_runs")
        if ratios:
            figures[f"calibrate{count}_ratio"] = float(np.mean(ratios))
            figures[f"calibrate{count}_worst_ratio"] = max(ratios)
    return figures


def _ratios(table: Sequence[Mapping[str, Any]], after: str) -> list[float]:
    """Of every GPU, its mean error over families after runs, over that before."""
    ratios = []
    for name in sorted({row["device"] for row in table}):
        pairs = [(row["mape"], row[after]) for row in table if row["device"] == name and after in row]
        if pairs:
            before, found = np.mean(pairs, axis=0)
            ratios.append(float(found / before))
    return ratios
