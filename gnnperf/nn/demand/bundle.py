"""The released networks for tunable kernels: a folder with `weights.pt`, `metadata.json`, and what was
measured of every kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

import gnnperf
from gnnperf.devices import DeviceSpec
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels import Description
from gnnperf.frontends.gpu_kernels.released_tables import load_released_tables
from gnnperf.frontends.gpu_kernels.tables import GpuTable
from gnnperf.nn.demand.demand import GENERIC, OWN, STATE, TIMES, Demand
from gnnperf.nn.demand.network import DemandConfig, DemandNet

VERSION = 2
WEIGHTS, METADATA = "weights.pt", "metadata.json"
ANY = "any"
"""Name of the networks for kernels that were never measured."""
READS = {"generic": GENERIC, "own": OWN, "state": STATE, "times": TIMES}
LEVELS = ("50", "80", "95")
RUNS = 5
"""Runs on a GPU, after which `adapted_half_widths` hold."""


@dataclass(frozen=True)
class DemandBundle:
    """networks: by kernel, and for ANY. half_widths: of the intervals of log2 runtime, by name of kernel or
    ANY and level in percent; from GPUs, and for ANY from kernels, that were held out. adapted_half_widths:
    the same after RUNS runs on the GPU. figures: of the evaluation that they are from. folder: with the
    measurements, if any."""

    networks: Mapping[str, Sequence[Demand]]
    half_widths: Mapping[str, Mapping[str, float]]
    figures: Mapping[str, float]
    adapted_half_widths: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    folder: Path | None = None

    def demands(self, description: Description) -> Sequence[Demand]:
        """Networks for a kernel: its own if it has the parameters they were trained on."""
        own = self.networks.get(description.name, ())
        known = own and own[0].parameters == tuple(description.parameters)
        return own if known else self.networks[ANY]

    def tables(self, description: Description) -> list[GpuTable]:
        """What was measured of a kernel, as far as it was released. InputError where that is damaged."""
        return [] if self.folder is None else load_released_tables(self.folder, description)

    def half_width(self, description: Description, level: str = "80", runs: int = 0) -> float:
        """Of an interval of log2 runtime; `level` is one of LEVELS. runs: on the GPU; between none and RUNS,
        the width is between theirs."""
        own = self.demands(description)[0].parameters is not None
        name = description.name if own and description.name in self.half_widths else ANY
        before = self.half_widths[name][level]
        after = self.adapted_half_widths.get(name, self.half_widths[name])[level]
        return before + (after - before) * min(runs, RUNS) / RUNS


def save_demands(folder: Path, bundle: DemandBundle, data: Mapping[str, Any]) -> None:
    """Write a bundle; `data`: what it was trained on. InputError where the folder cannot be written."""
    networks = [
        {
            "kernel": kernel, "parameters": demand.parameters, "config": asdict(demand.net.config),
            "devices": [device.to_dict() for device in demand.devices],
        }
        for kernel, demands in bundle.networks.items() for demand in demands
    ]  # fmt: skip
    metadata = {
        "version": VERSION, "reads": READS, "networks": networks, "half_widths": bundle.half_widths,
        "adapted_half_widths": bundle.adapted_half_widths,
        "figures": bundle.figures, "data": data,
        "versions": {"gnnperf": gnnperf.__version__, "torch": torch.__version__},
    }  # fmt: skip
    states = [demand.net.state_dict() for demands in bundle.networks.values() for demand in demands]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(states, folder / WEIGHTS)
        (folder / METADATA).write_text(json.dumps(metadata, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}; choose another folder") from error


def load_demands(folder: Path | str) -> DemandBundle:
    """Read a bundle. Raises InputError: not one, damaged, or made for other features (got / expected)."""
    folder = Path(folder)
    try:
        metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        states = torch.load(folder / WEIGHTS, weights_only=True, map_location="cpu")
    except Exception as error:  # torch.load raises a dozen types for a damaged file
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"expected networks for tunable kernels in {folder}: {reason}") from error
    reads = {name: list(columns) for name, columns in READS.items()}
    for what, got, expected in (
        ("version", metadata.get("version"), VERSION),
        ("reads", metadata.get("reads"), reads),
    ):
        if got != expected:
            raise InputError(f"{folder}: {what}: got {got}, expected {expected}; train it anew")
    networks: dict[str, list[Demand]] = {}
    try:
        for about, state in zip(metadata["networks"], states, strict=True):
            net = DemandNet(DemandConfig(**about["config"]))
            net.load_state_dict(state)
            devices = tuple(DeviceSpec.from_dict(d, str(folder / METADATA)) for d in about["devices"])
            parameters = None if about["parameters"] is None else tuple(about["parameters"])
            networks.setdefault(about["kernel"], []).append(Demand(net.eval(), devices, parameters))
        widths = metadata["half_widths"], metadata["adapted_half_widths"]
        return DemandBundle(networks, widths[0], metadata["figures"], widths[1], folder)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"damaged {folder}: {reason}; restore or train it anew") from error
