"""`gpu-runtime`: an ensemble of runtime models, their intervals, and what they do not speak about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from gnnperf.devices import DeviceSpec
from gnnperf.errors import InputError
from gnnperf.graph.workload import Workload
from gnnperf.nn.checkpoint import UNKNOWN, Contents, ModelProvenance
from gnnperf.nn.runtime.adaptation import Likeness, Traits, traits_of
from gnnperf.nn.runtime.columns import (
    FAMILIES,
    Columns,
    family_of,
    is_measured,
    on_device,
)
from gnnperf.nn.runtime.model import LEVELS, RuntimeCalibration, RuntimeModel, device_span, spans_of
from gnnperf.nn.runtime.physics import roofline_s

UNMEASURED = "unmeasured"
"""Stands in `RuntimeCalibration` for families that no measurement was seen of."""
DEVICE_STEP, SIZE_STEP = 0.25, 0.05
"""Intervals grow by these shares for every doubling that a GPU, or a workload, lies outside of what was
seen. Chosen by hand: left-out GPUs lie too close to the others to fit them."""
OTHER_DTYPE, OTHER_PRODUCT = 1.5, 2.0
"""How much wider intervals are of dtypes that were not measured: what moves memory, and products, which run
on units of their own. Chosen by hand."""
LIMIT = 1000
"""Runs that a head learns from at most."""
FARTHEST = 4.0
"""Doublings beyond which nothing is said about a GPU."""


@dataclass(frozen=True)
class Intervals:
    """Predictions of n workloads, in seconds, each f64[n].

    runtime_s: the median. bounds_s: nominal level -> (lower, upper). roofline_s: what the datasheet allows.
    """

    runtime_s: Tensor
    roofline_s: Tensor
    bounds_s: Mapping[float, tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class RuntimeHead:
    """Models that were fitted from different seeds, and how far to trust them.

    runs: what was run on the one GPU that this is adapted to, and what it was off by; see `calibrated`.
    left_out: in words, which runs it could not be adapted by.
    """

    MODEL: ClassVar = "gpu-runtime"

    models: tuple[RuntimeModel, ...]
    calibration: RuntimeCalibration
    provenance: ModelProvenance = UNKNOWN
    runs: tuple[Traits, Tensor] | None = None
    left_out: tuple[str, ...] = ()

    def log_runtime(self, x: Columns) -> Tensor:
        """Mean of the models: ln(seconds), f64[n], of columns of workloads and devices."""
        with torch.inference_mode():
            return torch.stack([model(x) for model in self.models]).mean(0)

    def sequence_s(self, x: Columns, times: Tensor) -> float:
        """Seconds of kernels that run one after another, each as often as `times` f64[n] says."""
        with torch.inference_mode():
            totals = torch.stack([model.sequence(x, times) for model in self.models])
        return float(torch.exp(torch.log(totals).mean() + self._shift(x, times)))

    def _shift(self, x: Columns, times: Tensor) -> float:
        """ln of what this device's own measurements change the sum of kernels by."""
        if self.runs is None:
            return 0.0
        own, plain = self.predict_columns(x), replace(self, runs=None).predict_columns(x)
        return float(torch.log((own.runtime_s * times).sum() / (plain.runtime_s * times).sum()))

    def predict(self, workloads: Sequence[Workload], device: DeviceSpec) -> Intervals:
        """Runtimes on one GPU. Raises InputError for one that is no GPU, lacks a number, or a dtype."""
        return self.predict_columns(on_device(workloads, device))

    def predict_columns(self, x: Columns) -> Intervals:
        """Of columns of workloads and devices, in any mixture."""
        center, roofline = self.log_runtime(x), roofline_s(x)
        left = torch.ones_like(center)
        if self.runs is not None and self.calibration.likeness is not None:
            shift, left = self.calibration.likeness.posterior(*self.runs, traits_of(x, self._shares(x)))
            center = center + shift
        bounds = {}
        for level in LEVELS:
            reach = self.reach(x, roofline, level) * left
            bounds[level] = torch.exp(center - reach), torch.exp(center + reach)
        return Intervals(torch.exp(center), roofline, bounds)

    def reach(self, x: Columns, roofline: Tensor, level: float) -> Tensor:
        """Half-widths of intervals in ln(seconds), f64[n]."""
        position = LEVELS.index(level)
        half = [self._half_width(name, position) for name in (*FAMILIES, UNMEASURED)]
        codes = torch.where(x["family"] < 0, len(FAMILIES), x["family"]).long()
        return torch.tensor(half, dtype=torch.float64)[codes] * self.widening(x, roofline)

    def _half_width(self, family: str, position: int) -> float:
        known = self.calibration
        worst = max(known.widths, key=lambda name: known.widths[name][1])
        name = family if family in known.widths else worst
        return known.widths[name][position] * (1.0 if name == family else 1.5)

    def widening(self, x: Columns, roofline: Tensor) -> Tensor:
        """f64[n], at least 1: by how much wider an interval is than on a GPU like those that were seen."""
        known = self.calibration
        outside = torch.zeros_like(roofline)
        spans = device_span(x)
        del spans["power"]  # widens nothing
        for name, values in spans.items():
            low, high = known.devices.get(name, (-math.inf, math.inf))
            outside = torch.maximum(outside, torch.clamp(torch.maximum(low - values, values - high), min=0))
        beyond = torch.zeros_like(roofline)
        for code, name in enumerate(FAMILIES):
            low, high = known.sizes.get(name, (-math.inf, math.inf))
            size = torch.log(roofline)
            apart = torch.clamp(torch.maximum(low - size, size - high), min=0) / math.log(2)
            beyond = torch.where(x["family"] == code, apart, beyond)
        factor = torch.where(x["kind"] == 0, OTHER_PRODUCT, OTHER_DTYPE)
        factor = torch.where(is_measured(x), 1.0, factor)
        return factor * (1 + DEVICE_STEP * outside + SIZE_STEP * beyond)

    def is_unmeasured(self, workload: Workload) -> bool:
        """Whether the family of a workload was measured nowhere: its interval is half as wide again."""
        return family_of(workload) not in self.calibration.widths

    def objection(self, workload: Workload, device: DeviceSpec) -> str | None:
        """Why nothing is said about this workload on this device, in words; None where something is."""
        if (far := self.too_far(device)) is not None:
            return far
        if workload.read_bytes + workload.written_bytes <= 0:
            return "the kernel touches no memory whose size is known (extents that depend on data?)"
        return None

    def too_far(self, device: DeviceSpec) -> str | None:
        """Why nothing is said about this device, in words; None where something is. Raises InputError for
        one that is no GPU, or lacks a number."""
        for name, value in spans_of([device]).items():
            low, high = self.calibration.devices.get(name, (-math.inf, math.inf))
            apart = float(torch.maximum(low - value, value - high))
            if apart > FARTHEST:
                return (
                    f"{device.name} lies {apart:.0f} doublings of {_SPOKEN[name]} away from every GPU that "
                    "was measured"
                )
        return None

    def calibrated(self, x: Columns, seconds: Tensor) -> RuntimeHead:
        """This head, adapted to one GPU by runs on it: columns of workloads and that device, seconds f64[n].
        Of more than LIMIT runs, as many that are evenly spaced count.

        See `adaptation`. Raises InputError for runtimes that are not positive, and where the head was made
        without what this needs.
        """
        if not len(seconds) or not bool((torch.isfinite(seconds) & (seconds > 0)).all()):
            raise InputError("expected at least one measured runtime, all of them positive")
        if self.calibration.likeness is None:
            raise InputError("expected a bundle that learns from runs; make it with `gnnperf train release`")
        some = torch.linspace(0, len(seconds) - 1, min(len(seconds), LIMIT)).round().long()
        x = {name: values[some] for name, values in x.items()}
        return replace(
            self, runs=(traits_of(x, self._shares(x)), torch.log(seconds[some]) - self.log_runtime(x))
        )

    def _shares(self, x: Columns) -> Tensor:
        return torch.stack([model.shares(x) for model in self.models]).mean(0)

    @staticmethod
    def reads() -> Mapping[str, Any]:
        """The families that are told apart, in the order of their codes."""
        return {"families": FAMILIES}

    def contents(self) -> Contents:
        """For `save_checkpoint`."""
        networks = {str(number): model.state_dict() for number, model in enumerate(self.models)}
        return Contents(networks, {"models": len(self.models)}, self.provenance, asdict(self.calibration))

    @classmethod
    def of(cls, contents: Contents) -> Self:
        """For `load_checkpoint`."""
        known = dict(contents.calibration or {})
        if known["likeness"] is not None:
            known["likeness"] = Likeness.of(known["likeness"])
        for name in ("devices", "sizes", "widths"):
            known[name] = {key: tuple(value) for key, value in known[name].items()}
        count = contents.hyperparameters["models"]
        models = tuple(contents.restore(str(number), RuntimeModel()) for number in range(count))
        return cls(models, RuntimeCalibration(**known), contents.provenance)


_SPOKEN = {
    "vendor": "vendor", "peak": "peak FLOP rate", "bandwidth": "bandwidth", "balance": "FLOPs per byte",
    "cache": "cache size", "process": "process", "power": "power per FLOP rate",
}  # fmt: skip
