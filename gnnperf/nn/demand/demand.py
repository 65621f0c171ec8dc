"""A network of demands with what it reads: features of configurations, and GPUs like the one asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from gnnperf.devices import DeviceSpec
from gnnperf.frontends.gpu_kernels.plan import Numbers
from gnnperf.frontends.gpu_kernels.tables import Candidates
from gnnperf.nn.demand.network import DemandNet
from gnnperf.nn.threads import one_thread

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
SHORTEST_S = 1e-9
"""Of a resource: one that is not used takes this long, too."""
BORROWED = 0.8
"""Of the offsets of like devices, the share that an unknown one takes."""


def likeness(a: DeviceSpec, b: DeviceSpec) -> float:
    """How much measurements on one GPU say about another; only ratios matter."""
    if a.isa == b.isa:
        return SAME_ISA
    return SAME_VENDOR if a.vendor == b.vendor else OTHER


@dataclass(frozen=True)
class Demand:
    """A network, and the GPUs whose offsets it has. parameters: those it reads, of the one kernel it is
    for; None: it reads generic features alone and is for any kernel."""

    net: DemandNet
    devices: tuple[DeviceSpec, ...]
    parameters: tuple[str, ...] | None

    def predict(
        self, candidates: Candidates, inputs: tuple[Tensor, Tensor, Tensor] | None = None
    ) -> Float64[np.ndarray, " n"]:
        """log2 of milliseconds. inputs: `inputs_of` the candidates, where they are at hand."""
        share = np.array([likeness(candidates.device, d) for d in self.devices])
        names = [d.name for d in self.devices]
        if candidates.device.name in names:
            share = np.array([float(n == candidates.device.name) for n in names])
        else:
            share = BORROWED * share / share.sum()
        inputs = inputs or inputs_of(candidates, self.parameters)
        shares = torch.from_numpy(share.astype(np.float32)).expand(*inputs[0].shape[:2], -1)
        with torch.inference_mode(), one_thread():
            return together(self.net.eval()(*inputs, shares)).double().numpy()


def mean_prediction(demands: Sequence[Demand], candidates: Candidates) -> Float64[np.ndarray, " n"]:
    """log2 of milliseconds: the mean of networks that read the same."""
    inputs = inputs_of(candidates, demands[0].parameters)
    return np.mean([demand.predict(candidates, inputs) for demand in demands], axis=0)


def inputs_of(candidates: Candidates, parameters: tuple[str, ...] | None) -> tuple[Tensor, Tensor, Tensor]:
    """Features f32[n, l, f], state f32[n, l, s] and log2 of the milliseconds of every resource f32[n, l, r]
    of n configurations with l launches: as `DemandNet.forward` takes them."""
    values = candidates.plan.values
    tuned = [np.log2(values[name] + 1.0) for name in parameters or ()]
    own = () if parameters is None else OWN
    launches = candidates.launches
    times = [
        np.column_stack([*(of[name] / np.maximum(of["balance"], 0.02) for name in TIMES), of["t_latency"]])
        for of in launches
    ]
    return (
        _stacked(
            [np.column_stack([*(_log(of[name]) for name in (*GENERIC, *own)), *tuned]) for of in launches]
        ),
        _stacked([np.column_stack([_log(of[name]) for name in STATE]) for of in launches]),
        _stacked([np.log2(np.maximum(time, SHORTEST_S) * 1e3) for time in times]),
    )


def together(log2_ms: Tensor) -> Tensor:
    """Launches follow one another: f32[n, l], log2 of the milliseconds of each -> f32[n], of their sum."""
    if log2_ms.size(1) == 1:
        return log2_ms.squeeze(1)
    return torch.logsumexp(log2_ms * math.log(2.0), dim=1) / math.log(2.0)


def _stacked(launches: Sequence[Numbers]) -> Tensor:
    return torch.from_numpy(np.stack(launches, axis=1).astype(np.float32))


def _log(values: Numbers) -> Numbers:
    return np.log2(np.maximum(values, 1e-12))
