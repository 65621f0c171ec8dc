"""Every GPU left out in turn: what is predicted for it, and hence how far to trust predictions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gnnperf.measure.workers import spawned
from gnnperf.nn.runtime.adaptation import Traits, fit_likeness, traits_of
from gnnperf.nn.runtime.columns import FAMILIES, Rows
from gnnperf.nn.runtime.head import RuntimeHead
from gnnperf.nn.runtime.model import LEVELS, RuntimeCalibration, RuntimeModel, device_span
from gnnperf.nn.runtime.operator_table import OperatorTable
from gnnperf.nn.runtime.physics import roofline_s
from gnnperf.training.runtime import RuntimeFitSettings, fit_model


@dataclass(frozen=True)
class Held:
    """Predictions for one GPU by models that did not see it.

    rows: positions of the rows predicted. log_predicted: ln(seconds), one row per seed. shares: of the first
    seed's, f64[n, 3]; see `RuntimeModel.shares`.
    """

    device: int
    rows: NDArray[np.int64]
    log_predicted: NDArray[np.float64]
    shares: NDArray[np.float64]

    def take(self, chosen: NDArray[np.bool_]) -> Held:
        """Of some of its rows."""
        return Held(self.device, self.rows[chosen], self.log_predicted[:, chosen], self.shares[chosen])

    def errors(self, rows: Rows) -> tuple[Traits, Tensor]:
        """What likeness is learned from: traits of the rows predicted, and what they were off by in ln."""
        chosen = rows.take(torch.from_numpy(self.rows))
        off = torch.log(chosen.seconds) - torch.from_numpy(self.log_predicted.mean(0))
        return traits_of(chosen.columns, torch.from_numpy(self.shares)), off


def leave_one_out(
    rows: Rows,
    devices: Sequence[int],
    fit_on: NDArray[np.bool_],
    judge_on: NDArray[np.bool_],
    seeds: Sequence[int],
    config: RuntimeFitSettings,
    workers: int = 1,
    advance: Callable[[int, str], None] = lambda done, what: None,
) -> list[Held]:
    """For every one of `devices`: models of the other devices' `fit_on` rows, asked for its `judge_on` rows.

    workers: processes. advance: called with (1, device) after every fit.
    """
    device = rows.device.numpy()
    tasks = []
    for held in devices:
        fit = torch.from_numpy(np.flatnonzero(fit_on & (device != held)))
        judged = np.flatnonzero(judge_on & (device == held))
        tasks += [(rows.take(fit), rows.take(torch.from_numpy(judged)), seed, config) for seed in seeds]
    predicted: dict[int, Predicted] = {}
    with closing(_predictions(tasks, workers)) as done:
        for at, result in done:
            predicted[at] = result
            advance(1, f"fit {len(predicted)}")
    found = []
    for i, held in enumerate(devices):
        mine = [predicted[at] for at in range(i * len(seeds), (i + 1) * len(seeds))]
        log_predicted = np.stack([log for log, _ in mine])
        found.append(Held(held, np.flatnonzero(judge_on & (device == held)), log_predicted, mine[0][1]))
    return found


Predicted = tuple[NDArray[np.float64], NDArray[np.float64]]
"""ln(seconds) of rows, and their shares."""
Task = tuple[Rows, Rows, int, RuntimeFitSettings]
"""To fit to, to predict, seed and settings."""


def _predictions(tasks: Sequence[Task], workers: int) -> Generator[tuple[int, Predicted], None, None]:
    """With the position of their task, as they come."""
    if workers == 1:
        yield from enumerate(map(_predict, tasks))
    else:
        yield from spawned(_predict, tasks, workers, torch.set_num_threads, 1)


def _predict(task: Task) -> Predicted:
    fit, judged, seed, config = task
    model = fit_model(fit, seed, config)
    with torch.inference_mode():
        result: Tensor = model(judged.columns)
    return result.numpy(), model.shares(judged.columns).numpy()


def calibrate(rows: Rows, held: Sequence[Held], seen: NDArray[np.bool_]) -> RuntimeCalibration:
    """Widths from the errors on GPUs that were left out; every GPU weighs the same in a family.

    seen: rows that the models in use were fitted to: predictions far from them get wider intervals.
    """
    family = rows.columns["family"].numpy()
    target = np.log(rows.seconds.numpy())
    widths = {}
    for code, name in enumerate(FAMILIES):
        errors = []
        for one in held:
            mine = family[one.rows] == code
            if mine.any():
                errors.append(one.log_predicted.mean(0)[mine] - target[one.rows[mine]])
        if errors:
            size = np.concatenate([np.abs(e) for e in errors])
            weight = np.concatenate([np.full(len(e), 1 / len(e)) for e in errors])
            widths[name] = tuple(_quantile(size, weight, level) for level in LEVELS)
    chosen = rows.take(torch.from_numpy(np.flatnonzero(seen)))
    spans = _device_spans(chosen)
    size = torch.log(roofline_s(chosen.columns)).numpy()
    codes = chosen.columns["family"].numpy()
    sizes = {
        name: (float(size[codes == code].min()), float(size[codes == code].max()))
        for code, name in enumerate(FAMILIES)
        if (codes == code).any()
    }
    likeness = fit_likeness([one.errors(rows) for one in held])
    return RuntimeCalibration(widths, likeness, spans, sizes)


def left_out(measured: OperatorTable, pairs: Sequence[Mapping[str, str]]) -> NDArray[np.bool_]:
    """Rows of the given {device, family} pairs."""
    family = measured.texts("op_family")
    chosen = np.zeros(len(family), dtype=bool)
    for pair in pairs:
        chosen |= (measured.device == pair["device"]) & (family == pair["family"])
    return chosen


def test_or_train(rows: Rows, split: NDArray[np.str_]) -> NDArray[np.bool_]:
    """The rows a GPU is judged on: those of the split "test", and of a family without such, of "train"."""
    group = rows.device.numpy() * 16 + rows.columns["family"].numpy()
    tested = np.unique(group[split == "test"])
    return (split == "test") | ((split == "train") & ~np.isin(group, tested))


def _quantile(values: NDArray[np.float64], weight: NDArray[np.float64], level: float) -> float:
    order = np.argsort(values)
    share = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][min(int(np.searchsorted(share, level)), len(values) - 1)])


def _device_spans(rows: Rows) -> dict[str, tuple[float, float]]:
    known = {name: values[~values.isnan()] for name, values in device_span(rows.columns).items()}
    return {name: (float(of.min()), float(of.max())) for name, of in known.items() if len(of)}


def fit_head(
    rows: Rows,
    fit_on: NDArray[np.bool_],
    judge_on: NDArray[np.bool_],
    seeds: Sequence[int],
    config: RuntimeFitSettings,
    workers: int = 1,
    advance: Callable[[int, str], None] = lambda done, what: None,
) -> RuntimeHead:
    """The head to release: models of all `fit_on` rows, intervals from leaving out every GPU in turn."""
    devices = [int(d) for d in torch.unique(rows.device)]
    held = leave_one_out(rows, devices, fit_on, judge_on, seeds[:1], config, workers, advance)
    chosen = rows.take(torch.from_numpy(np.flatnonzero(fit_on)))
    models: list[RuntimeModel] = []
    for seed in seeds:
        models.append(fit_model(chosen, seed, config))
        advance(1, f"seed {seed}")
    return RuntimeHead(tuple(models), calibrate(rows, held, fit_on))
