"""Learning what tunable kernels demand of a GPU from what was measured on others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad, smooth_l1_loss

from gnnperf.frontends.gpu_kernels.tables import GpuTable
from gnnperf.nn.demand import Demand, DemandConfig, DemandNet
from gnnperf.nn.demand.demand import SHORTEST_S, inputs_of, together
from gnnperf.nn.threads import one_thread


@dataclass(frozen=True)
class DemandFitSettings:
    """steps: of AdamW. rows: most of a table that are learned from, drawn at random, beside its `fastest`.
    shrink: weight of the devices' offsets in the loss."""

    steps: int = 600
    batch: int = 512
    rows: int = 4000
    fastest: int = 500
    shrink: float = 0.02
    learning_rate: float = 6e-3


def fit_demand(
    tables: Sequence[GpuTable], *, own: bool, seed: int = 0, settings: DemandFitSettings | None = None
) -> Demand:
    """Learn from tables.

    Args:
        tables: at least one; of one kernel if `own`.
        own: read the kernel's tuning parameters, beside what all kernels have in common.
        seed: of the weights and of the rows that are drawn.
        settings: of the training.
    """
    settings = settings or DemandFitSettings()
    parameters = tuple(tables[0].description.parameters) if own else None
    devices = tuple({t.device.name: t.device for t in tables}.values())
    names = [d.name for d in devices]
    chance = np.random.default_rng(seed)
    parts: list[tuple[Tensor, ...]] = []
    for table in tables:
        rows = _rows(table, settings, chance)
        inputs = tuple(x[rows] for x in inputs_of(table, parameters))
        weight = 0.1 + table.efficiency[rows]
        parts.append((
            *inputs,
            torch.full((len(rows),), names.index(table.device.name)),
            torch.from_numpy(np.log2(table.runtime_ms[rows]).astype(np.float32)),
            torch.from_numpy((weight / weight.sum()).astype(np.float32)),  # tables count alike
        ))  # fmt: skip
    most = max(part[0].size(1) for part in parts)
    read = [torch.cat([part[i].flatten(0, 1) for part in parts]) for i in range(2)]
    features, state, times = (
        torch.cat([pad(part[i], (0, 0, 0, most - part[i].size(1)), value=fill) for part in parts])
        for i, fill in enumerate((0.0, 0.0, math.log2(SHORTEST_S * 1e3)))  # launches that take no time
    )
    device, target, weight_ = (torch.cat(x) for x in zip(*(part[3:] for part in parts), strict=True))
    with torch.random.fork_rng(), one_thread():
        torch.manual_seed(seed)
        net = DemandNet(DemandConfig(features.size(-1), state.size(-1), times.size(-1), len(devices)))
        net.feature_scale.fit(read[0])
        net.state_scale.fit(read[1])
        with torch.no_grad():  # begin where the slowest resource alone decides, at the right mean
            net.state.bias.fill_(float((target - together(times.amax(-1))).median()))
        share = torch.eye(len(devices))[device].unsqueeze(1).expand(-1, most, -1)
        _optimise(net.train(), (features, state, times, share), target, weight_ / weight_.mean(), settings)
    return Demand(net.eval(), devices, parameters)


def _optimise(
    net: DemandNet, inputs: tuple[Tensor, ...], target: Tensor, weight: Tensor, settings: DemandFitSettings
) -> None:
    optimiser = torch.optim.AdamW(net.parameters(), lr=settings.learning_rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.learning_rate, total_steps=settings.steps
    )
    for _ in range(settings.steps):
        rows = torch.randint(len(target), (settings.batch,))
        error = smooth_l1_loss(
            together(net(*(x[rows] for x in inputs))), target[rows], reduction="none", beta=0.3
        )
        loss = (weight[rows] * error).mean() + settings.shrink * net.offsets()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()


def _rows(table: GpuTable, settings: DemandFitSettings, chance: np.random.Generator) -> np.ndarray:
    measured = np.flatnonzero(table.ok)
    some = chance.choice(measured, min(settings.rows, len(measured)), replace=False)
    fastest = measured[np.argsort(table.runtime_ms[measured])[: settings.fastest]]
    return np.unique(np.concatenate([some, fastest]))
