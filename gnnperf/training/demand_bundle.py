"""The released networks for tunable kernels: a folder with `weights.pt` and `metadata.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import gnnperf
from gnnperf.devices import DeviceSpec
from gnnperf.errors import InputError
from gnnperf.frontends.tunable import Description
from gnnperf.nn.demand import DemandConfig, DemandNet
from gnnperf.training.demand import GENERIC, OWN, STATE, TIMES, Demand

VERSION = 1
WEIGHTS, METADATA = "weights.pt", "metadata.json"
ANY = "any"
"""Name of the networks for kernels that were never measured."""
READS = {"generic": GENERIC, "own": OWN, "state": STATE, "times": TIMES}
LEVELS = ("50", "80", "95")


@dataclass(frozen=True)
class DemandBundle:
    """networks: by kernel, and for ANY. half_widths: of the intervals of log2 runtime, by name of kernel or
    ANY and level in percent; from GPUs, and for ANY from kernels, that were held out. figures: of the
    evaluation that they are from."""

    networks: Mapping[str, Sequence[Demand]]
    half_widths: Mapping[str, Mapping[str, float]]
    figures: Mapping[str, float]

    def demands(self, description: Description) -> Sequence[Demand]:
        """Networks for a kernel: its own if it has the parameters they were trained on."""
        own = self.networks.get(description.name, ())
        known = own and own[0].parameters == tuple(description.parameters)
        return own if known else self.networks[ANY]

    def half_width(self, description: Description, level: str = "80") -> float:
        """Of an interval of log2 runtime; `level` is one of LEVELS."""
        own = self.demands(description)[0].parameters is not None
        widths = self.half_widths.get(description.name) if own else None
        return (widths or self.half_widths[ANY])[level]


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
        return DemandBundle(networks, metadata["half_widths"], metadata["figures"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"damaged {folder}: {reason}; restore or train it anew") from error
