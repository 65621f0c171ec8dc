"""The runtime model: physics for every kind of workload."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from gnnperf.devices import DeviceSpec
from gnnperf.nn.runtime.adaptation import PROPERTIES, Likeness
from gnnperf.nn.runtime.columns import FAMILIES, UNLIMITED_W, Columns, device_columns
from gnnperf.nn.runtime.contraction import ContractionTime
from gnnperf.nn.runtime.physics import MapTime, Offsets, Physics, RowsTime, roofline_s

LEVELS = (0.5, 0.8, 0.95)
"""Nominal levels of the intervals."""

MEMORY_POWER_SHARE = 0.5
"""Of the board's power, what a kernel that is bound by memory draws; a round number, not fitted."""

VENDOR = 4.0
"""Doublings that stand for another vendor: none of what its libraries do is known. Chosen by hand."""

PARTS = ("map", "softmax", "rows", "contraction")
"""Names of the modules of a model; `rows` serves whatever goes over rows and is no softmax."""


class RuntimeModel(nn.Module):
    """ln(seconds) of workloads on GPUs, of any kind."""

    def __init__(self) -> None:
        super().__init__()
        self.physics = nn.ModuleDict(
            {"map": MapTime(), "softmax": RowsTime(), "rows": RowsTime(), "contraction": ContractionTime()}
        )

    def physics_of(self, part: str) -> Physics:
        """The formulas of one of PARTS."""
        physics = self.physics[part]
        assert isinstance(physics, Physics)
        return physics

    def forward(self, x: Columns, offsets: Offsets | None = None) -> Tensor:
        """f64[n] of columns [n] in any mixture of kinds; `offsets`, of [n]: see `Physics`."""
        result = torch.zeros_like(x["flops"])
        part = part_of(x)
        for index, name in enumerate(PARTS):
            chosen = part == index
            if chosen.any():
                rows = {column: values[chosen] for column, values in x.items()}
                own = {constant: values[chosen] for constant, values in (offsets or {}).items()}
                result[chosen] = self.part(name, rows, own)
        # Formulas that know bytes alone would let fp64 beat its peak.
        return torch.maximum(result, torch.log(roofline_s(x))) if "gain" in x else result

    def shares(self, x: Columns) -> Tensor:
        """f64[n, 3]: by how much ln(seconds) grows with ln of each of PROPERTIES of a GPU."""
        if not len(x["flops"]):
            return torch.zeros(0, len(PROPERTIES), dtype=torch.float64)
        with torch.enable_grad():
            offsets = {name: torch.zeros_like(x["flops"], requires_grad=True) for name in PROPERTIES}
            total = self(x, offsets).sum()
            found = torch.autograd.grad(total, list(offsets.values()), materialize_grads=True)
        return torch.stack(found, dim=1)

    def sequence(self, x: Columns, times: Tensor) -> Tensor:
        """Seconds of kernels that run one after another, each as often as `times` f64[n] says.

        The board's power is shared: those that use little of it leave it to the others, so that the limit is
        one on the energy of the whole. Launches are hidden behind the kernels before.
        """
        following = {**x, "sequence": torch.ones_like(times)}
        seconds = torch.exp(self(following))
        product = part_of(x) == PARTS.index("contraction")
        powered = MEMORY_POWER_SHARE * seconds
        if product.any():
            physics = self.physics_of("contraction")
            assert isinstance(physics, ContractionTime)
            rows = {column: values[product] for column, values in following.items()}
            powered[product] = physics.limits(rows, {})[1]
        return torch.maximum((seconds * times).sum(), (powered * times).sum())

    def part(self, name: str, x: Columns, offsets: Offsets) -> Tensor:
        """ln(seconds) of rows that are all of one part; `offsets`: see `Physics`."""
        time: Tensor = self.physics_of(name)(x, offsets)
        return time


def part_of(x: Columns) -> Tensor:
    """i64[n]: index into PARTS."""
    softmax = x["family"] == FAMILIES.index("softmax")
    rows = torch.where(softmax, 1, 2)
    return torch.where(x["kind"] == 2, 0, torch.where(x["kind"] == 1, rows, 3))


@dataclass(frozen=True)
class RuntimeCalibration:
    """How far predictions were off on GPUs that were left out, and what has been seen.

    widths: by family, half-widths in ln(seconds) of the intervals at LEVELS. likeness: of what kernels on one
    GPU are off by; None: nothing is learned from runs. devices: by number of a GPU (see `device_span`), least
    and largest seen. sizes: by family, least and largest ln(roofline seconds).
    """

    widths: Mapping[str, tuple[float, ...]]
    likeness: Likeness | None = None
    devices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def device_span(x: Columns) -> dict[str, Tensor]:
    """log2 of the numbers that tell how unlike GPUs are; NaN for a power that is not known."""
    power = torch.where(x["power"] >= UNLIMITED_W, math.nan, x["power"])
    ratios = {
        "vendor": 2 ** (x["amd"] * VENDOR),
        "peak": x["peak"],
        "bandwidth": x["bandwidth"],
        "balance": x["peak"] / x["bandwidth"],
        "cache": x["l2"],
        "process": x["process"],
        "power": power / (x["peak"] * x["process"]),
    }
    return {name: torch.log2(values) for name, values in ratios.items()}


def spans_of(devices: Iterable[DeviceSpec]) -> dict[str, Tensor]:
    """`device_span` of GPUs. Raises InputError for one that is none, or lacks a number."""
    listed = [device_columns(device) for device in devices]
    return device_span({
        name: torch.tensor([one[name] for one in listed], dtype=torch.float64) for name in listed[0]
    })  # fmt: skip
