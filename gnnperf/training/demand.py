"""Learning what tunable kernels demand of a GPU from what was measured on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from gnnperf.devices import DeviceSpec
from gnnperf.frontends.gpu_kernels.traffic import Numbers
from gnnperf.nn.demand import DemandConfig, DemandNet
from gnnperf.nn.threads import one_thread
from gnnperf.training.gpu_tables import Candidates, GpuTable

GENERIC = (
    "threads", "threads_x", "lane_use", "coalesced", "conflicts", "operations_per_load", "independent",
    "unrolled", "staged", "registers", "shared_bytes",
)  # fmt: skip
"""Physical features that mean the same for every kernel, known or not."""
OWN = (
    "work", "global_loads", "shared_loads", "operations", "block_bytes", "intensity", "read_only", "spilled",
)  # fmt: skip
"""Further ones, and the tuning parameters, for a kernel of a family that was measured."""
STATE = ("occupancy", "active_warps", "hidden", "register_pressure", "missed", "tail")
TIMES = ("t_issue", "t_shared", "t_l1", "t_l2", "t_dram", "t_special")
SAME_ISA, SAME_VENDOR, OTHER = 4.0, 1.0, 0.25
BORROWED = 0.8
"""Of the offsets of like devices, the share that an unknown one takes."""


def likeness(a: DeviceSpec, b: DeviceSpec) -> float:
    """How much measurements on one GPU say about another; only ratios matter."""
    if a.isa == b.isa:
        return SAME_ISA
    return SAME_VENDOR if a.vendor == b.vendor else OTHER


@dataclass(frozen=True)
class FitSettings:
    """steps: of AdamW. rows: most of a table that are learned from, drawn at random, beside its `fastest`.
    shrink: weight of the devices' offsets in the loss."""

    steps: int = 600
    batch: int = 512
    rows: int = 4000
    fastest: int = 500
    shrink: float = 0.02
    learning_rate: float = 6e-3


@dataclass(frozen=True)
class Demand:
    """A network, and the GPUs whose offsets it has. parameters: those it reads, of the one kernel it is
    for; None: it reads generic features alone and is for any kernel."""

    net: DemandNet
    devices: tuple[DeviceSpec, ...]
    parameters: tuple[str, ...] | None

    def predict(self, candidates: Candidates) -> Float64[np.ndarray, " n"]:
        """log2 of milliseconds."""
        share = np.array([likeness(candidates.device, d) for d in self.devices])
        names = [d.name for d in self.devices]
        if candidates.device.name in names:
            share = np.array([float(n == candidates.device.name) for n in names])
        else:
            share = BORROWED * share / share.sum()
        inputs = _inputs(candidates, self.parameters)
        shares = torch.from_numpy(share.astype(np.float32)).expand(len(candidates), -1)
        with torch.inference_mode(), one_thread():
            return self.net.eval()(*inputs, shares).double().numpy()


def fit_demand(
    tables: Sequence[GpuTable], *, own: bool, seed: int = 0, settings: FitSettings | None = None
) -> Demand:
    """Learn from tables.

    Args:
        tables: at least one; of one kernel if `own`.
        own: read the kernel's tuning parameters, beside what all kernels have in common.
        seed: of the weights and of the rows that are drawn.
        settings: of the training.
    """
    settings = settings or FitSettings()
    parameters = tuple(tables[0].description.parameters) if own else None
    devices = tuple({t.device.name: t.device for t in tables}.values())
    names = [d.name for d in devices]
    chance = np.random.default_rng(seed)
    parts: list[tuple[Tensor, ...]] = []
    for table in tables:
        rows = _rows(table, settings, chance)
        inputs = tuple(x[rows] for x in _inputs(table, parameters))
        weight = 0.1 + table.efficiency[rows]
        parts.append((
            *inputs,
            torch.full((len(rows),), names.index(table.device.name)),
            torch.from_numpy(np.log2(table.runtime_ms[rows]).astype(np.float32)),
            torch.from_numpy((weight / weight.sum()).astype(np.float32)),  # tables count alike
        ))  # fmt: skip
    features, state, times, device, target, weight_ = (torch.cat(x) for x in zip(*parts, strict=True))
    with torch.random.fork_rng(), one_thread():
        torch.manual_seed(seed)
        net = DemandNet(DemandConfig(features.size(1), state.size(1), times.size(1), len(devices)))
        net.feature_scale.fit(features)
        net.state_scale.fit(state)
        with torch.no_grad():  # begin where the slowest resource alone decides, at the right mean
            net.state.bias.fill_(float((target - times.amax(1)).median()))
        share = torch.eye(len(devices))[device]
        _optimise(net.train(), (features, state, times, share), target, weight_ / weight_.mean(), settings)
    return Demand(net.eval(), devices, parameters)


def _optimise(
    net: DemandNet, inputs: tuple[Tensor, ...], target: Tensor, weight: Tensor, settings: FitSettings
) -> None:
    optimiser = torch.optim.AdamW(net.parameters(), lr=settings.learning_rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.learning_rate, total_steps=settings.steps
    )
    for _ in range(settings.steps):
        rows = torch.randint(len(target), (settings.batch,))
        error = smooth_l1_loss(net(*(x[rows] for x in inputs)), target[rows], reduction="none", beta=0.3)
        loss = (weight[rows] * error).mean() + settings.shrink * net.offsets()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()


def _rows(table: GpuTable, settings: FitSettings, chance: np.random.Generator) -> np.ndarray:
    measured = np.flatnonzero(table.ok)
    some = chance.choice(measured, min(settings.rows, len(measured)), replace=False)
    fastest = measured[np.argsort(table.runtime_ms[measured])[: settings.fastest]]
    return np.unique(np.concatenate([some, fastest]))


def _inputs(candidates: Candidates, parameters: tuple[str, ...] | None) -> tuple[Tensor, Tensor, Tensor]:
    """Features, state and log2 of the milliseconds of every resource, as `DemandNet.forward` takes them."""
    physics = candidates.physics
    columns = [_log(physics[name]) for name in GENERIC]
    if parameters is not None:
        columns += [_log(physics[name]) for name in OWN]
        columns += [np.log2(candidates.plan.values[name] + 1.0) for name in parameters]
    state = [_log(physics[name]) for name in STATE]
    times = (
        np.stack([*(physics[name] for name in TIMES)], axis=1) / np.maximum(physics["balance"], 0.02)[:, None]
    )
    times = np.concatenate([times, physics["t_latency"][:, None]], axis=1)
    return (
        torch.from_numpy(np.stack(columns, axis=1).astype(np.float32)),
        torch.from_numpy(np.stack(state, axis=1).astype(np.float32)),
        torch.from_numpy(np.log2(np.maximum(times, 1e-9) * 1e3).astype(np.float32)),
    )


def _log(values: Numbers) -> Numbers:
    return np.log2(np.maximum(values, 1e-12))
