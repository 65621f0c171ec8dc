"""Runtime on a GPU from what a kernel demands of each of its resources, and what the GPU supplies."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gnnperf.nn.scaling import Standardise

SHARPNESS = 2.0
"""Of the smooth maximum over resources: the larger, the more the slowest alone decides."""
REACH = 3.0
"""Most that a configuration's demand of a resource may be off the count, in powers of two."""


@dataclass(frozen=True)
class DemandConfig:
    """Hyperparameters.

    Attributes:
        features: describing a configuration, whatever the device.
        state: describing how it occupies a device.
        resources: of the device, each of which has a time.
        devices: in training.
        width: of the hidden layers.
    """

    features: int
    state: int
    resources: int
    devices: int
    width: int = 64


class DemandNet(nn.Module):
    """log2 of a runtime: a smooth maximum of the times that the resources of a GPU take.

    The times are computed from counts and from the device's description; the network corrects the counts.
    What a configuration demands is the same on every GPU, so that a GPU enters through its supplies alone
    and one that was never measured needs no parameters. Every GPU in training has offsets of its own,
    which are kept small; an unknown one borrows from those like it.

    Args:
        config: hyperparameters.
    """

    def __init__(self, config: DemandConfig) -> None:
        super().__init__()
        width, resources = config.width, config.resources
        self.config = config
        self.feature_scale = Standardise(config.features)
        self.state_scale = Standardise(config.state)
        self.demand = nn.Sequential(
            nn.Linear(config.features, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, resources),
        )  # fmt: skip
        self.state = nn.Linear(config.state, resources)
        self.supply = nn.Embedding(config.devices, resources)
        self.overall = nn.Embedding(config.devices, 1)
        for layer in (self.demand[-1], self.state):
            for weight in layer.parameters():
                nn.init.zeros_(weight)
        nn.init.zeros_(self.supply.weight)
        nn.init.zeros_(self.overall.weight)

    def forward(self, features: Tensor, state: Tensor, times: Tensor, share: Tensor) -> Tensor:
        """Predict runtimes of launches.

        Args:
            features: f32[*b, features].
            state: f32[*b, state].
            times: f32[*b, resources], log2 of the milliseconds of each resource alone.
            share: f32[*b, devices], how much each device of the training stands for this one; rows sum to
                1 at most.

        Returns:
            f32[*b], log2 of milliseconds.
        """
        demand = REACH * torch.tanh(self.demand(self.feature_scale(features)) / REACH)
        total = demand + self.state(self.state_scale(state)) + times + share @ self.supply.weight
        scale = SHARPNESS * math.log(2.0)
        return torch.logsumexp(total * scale, dim=-1) / scale + (share @ self.overall.weight).squeeze(-1)

    def offsets(self) -> Tensor:
        """How far the devices of the training are from their descriptions: mean square, f32[]."""
        return self.supply.weight.square().sum(1).mean() + 0.25 * self.overall.weight.square().mean()
