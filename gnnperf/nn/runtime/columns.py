"""Workloads and devices as columns of numbers: one row per (workload, device)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gnnperf.devices import DeviceSpec, peer
from gnnperf.errors import InputError
from gnnperf.graph.vocabulary import PRECISIONS, element_bytes
from gnnperf.graph.workload import Workload

Columns = Mapping[str, Tensor]
"""Name -> f64[n]. Times in seconds, sizes in bytes, rates per second.

Rows that are not fp32 have two more: `element_bytes`, and `gain`, the peak of their dtype over that of fp32.
Measured ones may have `variant`, which kernel ran, to learn from: nothing that predicts reads it.
"""

KINDS = ("contraction", "rows", "map")
FAMILIES = ("bmm", "linear", "softmax", "layernorm", "elementwise")
"""Families that were measured, by their codes; any other has the code -1."""

UNLIMITED_W = 1e9
"""Board power that stands for an unknown one: no limit."""

LIBRARIES = ("maxwell", "volta", "ampere", "amd")
"""Generations of the kernels for products that the vendors' libraries run; devices have an index of it."""
_LIBRARY = {
    **dict.fromkeys(("kepler", "maxwell", "pascal"), "maxwell"),
    **dict.fromkeys(("volta", "turing"), "volta"),
}
"""By architecture of NVIDIA; on later ones cuBLAS runs fp32 kernels that are named for Ampere."""
_NEEDED = ("cores", "boost_mhz", "peak_gflops_fp32", "bandwidth_gbps", "l2_bytes", "fp32_lanes_per_core",
           "threads_per_core")  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """n measurements: columns of workload and device, seconds f64[n], and the device of each, i64[n]."""

    columns: Columns
    seconds: Tensor
    device: Tensor

    def __len__(self) -> int:
        return len(self.seconds)

    def take(self, chosen: Tensor) -> Rows:
        columns = {name: values[chosen] for name, values in self.columns.items()}
        return Rows(columns, self.seconds[chosen], self.device[chosen])


def family_of(workload: Workload) -> str:
    """The measured family of a workload; products are told apart by how the second operand lies."""
    if workload.kind == "contraction" and workload.family in ("matmul", ""):
        return "linear" if workload.transposed and workload.batch == 1 else "bmm"
    if workload.family in FAMILIES:
        return workload.family
    return "elementwise" if workload.kind == "map" and not workload.family else ""


def workload_columns(workloads: Sequence[Workload]) -> dict[str, Tensor]:
    """b workloads as columns f64[b]."""
    names = ("flops", "read_bytes", "written_bytes", "batch", "m", "n", "k", "rows", "columns", "passes")
    columns = {n: torch.tensor([float(getattr(w, n)) for w in workloads], dtype=torch.float64) for n in names}
    families = [family_of(w) for w in workloads]
    codes = [FAMILIES.index(f) if f in FAMILIES else -1 for f in families]
    columns["kind"] = torch.tensor([float(KINDS.index(w.kind)) for w in workloads], dtype=torch.float64)
    columns["family"] = torch.tensor(codes, dtype=torch.float64)
    return columns


def device_columns(device: DeviceSpec) -> dict[str, float]:
    """The numbers of a GPU that runtimes are predicted from.

    Process and memory, where they are not given, are those of a like GPU of the catalog; a power limit or a
    process that is not known even so counts as one that does not limit (see `assumptions`).
    Raises InputError for a CPU, and for a GPU whose clock, peak, bandwidth or sizes are not known.
    """
    if device.kind != "gpu":
        raise InputError(f"{device.name}: expected a GPU, got a {device.kind}; see `gnnperf devices list`")
    if missing := [name for name in _NEEDED if getattr(device, name) is None]:
        raise InputError(f"{device.name}: {missing[0]} is needed and not known; add it to the device's YAML")
    clock, peak = float(device.boost_mhz or 0) * 1e6, float(device.peak_gflops_fp32 or 0) * 1e9
    lanes = float(device.fp32_lanes_per_core or 0)
    library = "amd" if device.vendor == "AMD" else _LIBRARY.get(device.arch or "", "ampere")
    like = peer(device) if device.process_nm is None or device.memory is None else None
    process = device.process_nm or (like.process_nm if like else None)
    known = device.board_power_w is not None and process is not None
    memory = (device.memory or (like.memory if like else None) or "").upper()
    return {
        "bandwidth": float(device.bandwidth_gbps or 0) * 1e9,
        "cores": float(device.cores),
        "clock": clock,
        "l1": _l1_bytes(device, library),
        "l2": float(device.l2_bytes or 0),
        "peak": peak,
        "matrix_peak": float(device.peak_gflops_fp32_matrix or 0) * 1e9 or peak,
        "threads": float(device.threads_per_core or 0),
        "power": float(device.board_power_w or 0) if known else UNLIMITED_W,
        "process": process or 7.0,
        "gddr": float(memory.startswith(("GDDR", "LPDDR"))),
        "amd": float(device.vendor == "AMD"),
        "library": float(LIBRARIES.index(library)),
        # One instruction a cycle and scheduler: what is not a multiplication takes its slot from one.
        "single_issue": float(lanes >= 128 and library != "maxwell"),
    }


def _l1_bytes(device: DeviceSpec, library: str) -> float:
    """Of one multiprocessor. Since Volta NVIDIA's are one memory with the shared one, some 28 KiB larger than
    what blocks may share (128 KiB on V100, 192 KiB on A100: architecture white papers). Before, 64 lanes have
    24 KiB (24 KiB on P100, 48 KiB on GP104: Pascal tuning guide); those of AMD 16 KiB."""
    if library == "maxwell":
        return 24.0 * 1024 * min(float(device.fp32_lanes_per_core or 64) / 64, 2.0)
    if library == "amd":
        return 16.0 * 1024
    return float(device.shared_bytes_per_core or 64 * 1024) + 28 * 1024.0


def assumptions(device: DeviceSpec) -> list[str]:
    """What is taken for granted of a GPU where its description is silent or doubtful, in words."""
    words = []
    like = peer(device)
    for name in ("process_nm", "memory"):
        if getattr(device, name) is None:
            taken = f"{getattr(like, name)}, as of {like.name}" if like else "7 nm, or HBM"
            words.append(f"its {name} is not given: taken as {taken}")
    if device.board_power_w is None or (device.process_nm is None and like is None):
        words.append("its board power or process is not known: power is taken as no limit")
    for name, known in device.provenance.items():
        if known.doubtful and name in ("boost_mhz", "peak_gflops_fp32", "bandwidth_gbps", "board_power_w"):
            words.append(f"its {name} is doubtful: {known.doubtful}")
    return words


def on_device(workloads: Sequence[Workload], device: DeviceSpec) -> dict[str, Tensor]:
    """Columns of b workloads with those of one device added. Raises InputError as `device_columns` and `gain`
    do."""
    columns = workload_columns(workloads)
    some = columns["flops"]
    columns |= {name: torch.full_like(some, value) for name, value in device_columns(device).items()}
    if any(w.dtype != "fp32" for w in workloads):
        gains = [gain(device, w.dtype, w.kind) for w in workloads]
        sizes = [float(element_bytes(PRECISIONS[w.dtype])) for w in workloads]
        columns |= {"gain": torch.tensor(gains).double(), "element_bytes": torch.tensor(sizes).double()}
    return columns


class UnknownPeakError(InputError):
    """A GPU is not known to have a dtype; others may."""


def gain(device: DeviceSpec, dtype: str, kind: str) -> float:
    """The peak of a GPU in a dtype over that in fp32: of products, or of other arithmetic, which is done in
    fp32 whatever is stored, but for fp64. Raises UnknownPeakError where the GPU is not known to have the
    dtype."""
    product = kind == "contraction"
    if not product and dtype != "fp64":
        return 1.0
    peak = device.product_gflops(dtype) if product else device.peak_gflops_fp64
    if peak is None:
        known = [name for name in PRECISIONS if device.product_gflops(name)]
        raise UnknownPeakError(
            f"{device.name}: expected a dtype that its peak is known of ({', '.join(known)}), got {dtype}; "
            f"choose one of them, or add peak_gflops_{dtype} to a YAML of the device"
        )
    return peak / ((product and device.peak_gflops_fp32_matrix) or device.peak_gflops_fp32 or peak)


def legacy(x: Columns) -> Tensor:
    """f64[n], 0 or 1: NVIDIA before Volta."""
    return (x["library"] == LIBRARIES.index("maxwell")).double()


def is_measured(x: Columns) -> Tensor:
    """bool[n]: rows in fp32, or that cost what fp32 costs; nothing else was measured anywhere."""
    if "gain" not in x:
        return torch.ones_like(x["flops"], dtype=torch.bool)
    return (x["gain"] == 1) & (x["element_bytes"] == 4)
