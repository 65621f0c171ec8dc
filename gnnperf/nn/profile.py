"""The dynamic profile as an optional input of the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gnnperf.nn.scaling import Standardise

PROFILE_FIELDS: tuple[str, ...] = (
    "runtime_s",
    "runtime_1_thread_s",
    "flops_share",
    "bandwidth_share",
    "size_exponent",
)
"""What of a dynamic profile (`gnnperf.measure.Profile`) enters the network; each value may be absent."""


def profile_row(profile: Mapping[str, Any] | None) -> Tensor:
    """f32[P] in the order of PROFILE_FIELDS, as log2 of the value; NaN where a value is absent.

    All fields are positive: ratios, or seconds far below 1, where sign(x)*log2(1+|x|) would be
    all but linear, hence the plain logarithm.
    """
    values = [(profile or {}).get(field) for field in PROFILE_FIELDS]
    return torch.tensor([float("nan") if v is None or v <= 0 else v for v in values]).log2()


class ProfileEncoder(nn.Module):
    """A vector from a profile in which any value, or all of them, may be absent.

    Args:
        fields: number of values in a profile.
        width: width of the result.
    """

    def __init__(self, fields: int, width: int) -> None:
        super().__init__()
        self.scale = Standardise(fields)
        self.perceptron = nn.Sequential(nn.Linear(2 * fields, width), nn.GELU(), nn.Linear(width, width))

    def forward(self, profile: Tensor) -> Tensor:
        """f32[b, P] with NaN for absent -> f32[b, width]; exactly 0 where the whole profile is absent."""
        absent = profile.isnan()
        present = (~absent).to(profile.dtype)
        encoded = self.perceptron(torch.cat([self.scale(profile).nan_to_num() * present, present], dim=1))
        return encoded * present.amax(1, keepdim=True)
