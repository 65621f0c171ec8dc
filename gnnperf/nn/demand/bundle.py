"""`tunable-kernels`: networks of what tunable GPU kernels demand, and what was measured of each kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

from gnnperf.devices import DeviceSpec
from gnnperf.frontends.gpu_kernels import Description
from gnnperf.frontends.gpu_kernels.released_tables import tables_from_bytes, tables_to_bytes
from gnnperf.frontends.gpu_kernels.tables import GpuTable
from gnnperf.nn.checkpoint import UNKNOWN, Contents, ModelProvenance
from gnnperf.nn.demand.demand import GENERIC, OWN, STATE, TIMES, Demand
from gnnperf.nn.demand.network import DemandConfig, DemandNet

ANY = "any"
"""Name of the networks for kernels that were never measured."""
LEVELS = ("50", "80", "95")
"""Of the intervals, in percent."""
RUNS = 5
"""Runs on a GPU, after which `adapted_half_widths` hold."""


@dataclass(frozen=True)
class DemandBundle:
    """Attributes:
    networks: by kernel, and for ANY.
    half_widths: of the intervals of log2 runtime, by name of kernel or ANY and level in percent; from GPUs,
        and for ANY from kernels, that were held out.
    adapted_half_widths: of the intervals after RUNS runs on the GPU.
    provenance: where the networks come from.
    measured: by kernel, what was measured of it, as `tables_to_bytes` writes it.
    """

    MODEL: ClassVar = "tunable-kernels"

    networks: Mapping[str, Sequence[Demand]]
    half_widths: Mapping[str, Mapping[str, float]]
    adapted_half_widths: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    provenance: ModelProvenance = UNKNOWN
    measured: Mapping[str, bytes] = field(default_factory=dict)

    def demands(self, description: Description) -> Sequence[Demand]:
        """Networks for a kernel: its own if it has the parameters they were trained on."""
        own = self.networks.get(description.name, ())
        known = own and own[0].parameters == tuple(description.parameters)
        return own if known else self.networks[ANY]

    def tables(self, description: Description) -> list[GpuTable]:
        """What was measured of a kernel, as far as it was released. InputError where that is damaged."""
        data = self.measured.get(description.name)
        return [] if data is None else tables_from_bytes(data, description)

    def half_width(self, description: Description, level: str = "80", runs: int = 0) -> float:
        """Of an interval of log2 runtime; `level` is one of LEVELS. runs: on the GPU; between none and RUNS,
        the width is between theirs."""
        own = self.demands(description)[0].parameters is not None
        name = description.name if own and description.name in self.half_widths else ANY
        before = self.half_widths[name][level]
        after = self.adapted_half_widths.get(name, self.half_widths[name])[level]
        return before + (after - before) * min(runs, RUNS) / RUNS

    @staticmethod
    def reads() -> Mapping[str, Any]:
        """Columns that the networks read beside tuning parameters."""
        return {"generic": GENERIC, "own": OWN, "state": STATE, "times": TIMES}

    def contents(self) -> Contents:
        """For `save_checkpoint`."""
        named = {
            f"{kernel}.{number}": demand
            for kernel, demands in self.networks.items()
            for number, demand in enumerate(demands)
        }
        about = {
            name: {
                "parameters": demand.parameters,
                "config": asdict(demand.net.config),
                "devices": [device.to_dict() for device in demand.devices],
            }
            for name, demand in named.items()
        }
        return Contents(
            {name: demand.net.state_dict() for name, demand in named.items()},
            {"networks": about},
            self.provenance,
            {"half_widths": self.half_widths, "adapted_half_widths": self.adapted_half_widths},
            {f"measured-{kernel}.parquet": data for kernel, data in self.measured.items()},
        )

    @classmethod
    def of(cls, contents: Contents) -> Self:
        """For `load_checkpoint`."""
        networks: dict[str, list[Demand]] = {}
        for name, about in contents.hyperparameters["networks"].items():
            net = contents.restore(name, DemandNet(DemandConfig(**about["config"])))
            devices = tuple(DeviceSpec.from_dict(device, name) for device in about["devices"])
            parameters = None if about["parameters"] is None else tuple(about["parameters"])
            networks.setdefault(name.rpartition(".")[0], []).append(Demand(net, devices, parameters))
        measured = {
            name.removeprefix("measured-").removesuffix(".parquet"): data
            for name, data in contents.files.items()
        }
        known = contents.calibration or {}
        widths = known["half_widths"], known["adapted_half_widths"]
        return cls(networks, *widths, contents.provenance, measured)


def measured_files(tables: Sequence[GpuTable]) -> dict[str, bytes]:
    """`DemandBundle.measured` of tables of any kernels."""
    return {
        kernel: tables_to_bytes([table for table in tables if table.kernel == kernel])
        for kernel in dict.fromkeys(table.kernel for table in tables)
    }
