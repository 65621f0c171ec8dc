"""What limits a kernel on a GPU, as formulas with constants to be learned.

Every model is a module: columns of workloads and devices in, ln(seconds) out. A runtime is made of the time
to start a kernel, the time in its slowest resource, softened where two are about as slow, and the time that
the board's power allows. Constants are logarithms unless said otherwise; `offsets` are added to some of
them, per row: what one training device has of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from gnnperf.devices import LAUNCH_GAP_S
from gnnperf.nn.runtime.columns import Columns, legacy

Offsets = Mapping[str, Tensor]

AMD_SHARE = 0.02
"""Prior weight of what a launch on AMD GPUs takes more or less than one on NVIDIA's, in ln."""
FIRST_HBM = -0.18
"""ln of what the first controllers for HBM2 reach of their peak against later ones: published triads are at
0.75 on P100, at 0.9 on V100 and A100."""
GDDR_SHARE = 0.1
"""Prior weight of what GDDR memory loses to its error correction against HBM."""


def roofline_s(x: Columns) -> Tensor:
    """max(FLOPs / peak, compulsory bytes / bandwidth), in seconds."""
    compute = x["flops"] / torch.where(x["kind"] == 0, product_peak(x), x["peak"] * gain_of(x))
    return torch.maximum(compute, (x["read_bytes"] + x["written_bytes"]) / x["bandwidth"])


def gain_of(x: Columns) -> Tensor:
    """f64[n]: the peak of a row's dtype over that of fp32."""
    return x["gain"] if "gain" in x else torch.ones_like(x["flops"])


def bytes_of(x: Columns) -> Tensor:
    """f64[n]: bytes of an element."""
    return x["element_bytes"] if "element_bytes" in x else torch.full_like(x["flops"], 4.0)


def product_peak(x: Columns) -> Tensor:
    """f64[n]: FLOPs per second of products in a row's dtype."""
    return x["matrix_peak"] * gain_of(x)


def either(a: Tensor, b: Tensor, sharpness: Tensor) -> Tensor:
    """(a^p + b^p)^(1/p) with p = exp(sharpness): the sum at p = 1, the maximum for large p."""
    p = torch.exp(sharpness)
    larger = torch.maximum(a, b)
    return larger * ((a / larger) ** p + (b / larger) ** p) ** (1 / p)


class Physics(nn.Module):
    """Named scalar constants, with starting values and the weights that hold them there."""

    start: ClassVar[Mapping[str, float]]
    prior: ClassVar[Mapping[str, float]]
    varying: ClassVar[tuple[str, ...]]
    """Constants that differ between devices for reasons that no column gives."""

    def __init__(self) -> None:
        super().__init__()
        self.constants = nn.ParameterDict(
            {
                name: nn.Parameter(torch.tensor(value, dtype=torch.float64))
                for name, value in self.start.items()
            }
        )

    def get(self, name: str, offsets: Offsets) -> Tensor:
        value: Tensor = self.constants[name]
        return value + offsets[name] if name in offsets else value

    def departure(self) -> Tensor:
        """Weighted squares of how far constants moved from where physics puts them."""
        moved = [w * (self.constants[name] - self.start[name]) ** 2 for name, w in self.prior.items()]
        return torch.stack(moved).sum() if moved else torch.zeros((), dtype=torch.float64)

    def started(self, x: Columns, body: Tensor, offsets: Offsets) -> Tensor:
        """Seconds of kernels that run `body` f64[n] seconds once they have begun, alone.

        The host needs `launch` to start one and to see that it is done; the GPU needs `begin` and the body
        meanwhile, and what takes longer counts. In a sequence (column `sequence` is 1) the host is ahead of
        the GPU, and only the gap between two kernels is left of them.
        """
        c = self.constants
        launch = self.get("launch", offsets) + c["launch_amd"] * x["amd"]
        if "launch_linear" in c:
            launch = launch + c["launch_linear"] * (x["family"] == 1)
        host, begin = torch.exp(launch), torch.exp(c["begin"])
        if "sequence" in x:
            follows = x["sequence"] == 1
            host, begin = torch.where(follows, LAUNCH_GAP_S, host), torch.where(follows, 0.0, begin)
        return either(host, begin + body, c["soft_launch"])

    def bandwidth(self, x: Columns, offsets: Offsets) -> Tensor:
        """Achievable bytes per second of main memory."""
        return x["bandwidth"] * torch.exp(
            self.get("memory", offsets)
            + self.constants["gddr"] * x["gddr"]
            + self.constants["first_hbm"] * legacy(x) * (1 - x["gddr"])
        )


class MapTime(Physics):
    """Elementwise kernels: main memory where the data exceeds the L2 cache, else the multiprocessors."""

    start: ClassVar = {"memory": -0.1, "gddr": -0.1, "first_hbm": FIRST_HBM, "cache_edge": 0.0,
             "cache_slope": 0.7, "per_core": 2.8, "soft": 0.7, "soft_launch": 1.5, "launch": -10.4,
             "launch_amd": 0.0, "begin": -11.2}  # fmt: skip
    prior: ClassVar = {"gddr": GDDR_SHARE, "first_hbm": 0.1, "launch_amd": AMD_SHARE}
    varying: ClassVar = ("launch", "memory")

    def forward(self, x: Columns, offsets: Offsets) -> Tensor:
        c = self.constants
        size = x["read_bytes"] + x["written_bytes"]
        edge = torch.log(size / x["l2"]) - c["cache_edge"]
        memory = size * torch.sigmoid(torch.exp(c["cache_slope"]) * edge) / self.bandwidth(x, offsets)
        cores = size / (x["cores"] * x["clock"] * torch.exp(c["per_core"]))
        body = either(memory, cores, c["soft"])
        return torch.log(self.started(x, body, offsets))


class RowsTime(Physics):
    """Kernels that go over rows several times: later passes hit the L1 cache where the rows that a
    multiprocessor has in flight fit it, or the L2 cache where those of all do, else main memory again.

    `memory`, `gddr` and `first_hbm` are those of `MapTime`, and stay as they are set.
    """

    start: ClassVar = {"memory": -0.15, "gddr": -0.1, "first_hbm": FIRST_HBM, "miss_slope": 1.0,
             "miss_edge": -0.7, "l1_edge": 0.0, "per_core": 2.7, "cached": -1.0, "row": 7.0, "step": 3.0,
             "soft": 1.0, "soft_launch": 1.5, "launch": -10.1, "launch_amd": 0.0, "begin": -11.2}  # fmt: skip
    prior: ClassVar = {"launch_amd": AMD_SHARE, "cached": 0.02, "miss_slope": 0.05, "miss_edge": 0.02,
             "l1_edge": 0.02}  # fmt: skip
    varying: ClassVar = ("launch",)

    def forward(self, x: Columns, offsets: Offsets) -> Tensor:
        c = self.constants
        rows, columns = x["rows"], x["columns"]
        block, rows_per_block, passes = _row_kernel(x)
        blocks = torch.clamp(torch.floor(x["threads"] / block), 1, 16)
        resident = x["cores"] * blocks
        size = x["read_bytes"] + x["written_bytes"]
        in_flight = blocks * rows_per_block * columns * bytes_of(x)
        beyond_l1 = torch.sigmoid(4 * (torch.log(in_flight / x["l1"]) - c["l1_edge"]))
        again = x["read_bytes"] * (passes - 1) * beyond_l1
        held = torch.log(x["cores"] * in_flight / x["l2"])
        miss = torch.sigmoid(torch.exp(c["miss_slope"]) * (held - c["miss_edge"]))
        fits = torch.sigmoid(4 * (torch.log(size / x["l2"]) + 0.4))
        memory = (size * fits + again * miss) / self.bandwidth(x, offsets)
        cores = (size + again * torch.exp(c["cached"])) / (x["cores"] * x["clock"] * torch.exp(c["per_core"]))
        waves = torch.ceil(rows / rows_per_block / resident)
        steps = torch.ceil(columns / block / 4)
        # Plain reductions go over all threads at once: short rows share a block, and blocks share long ones.
        spread = x["family"] < 0
        waves = torch.where(spread, 1.0, waves)
        steps = torch.where(spread, torch.ceil(rows * columns / block / 4 / resident), steps)
        latency = waves * (torch.exp(c["row"]) + torch.exp(c["step"]) * steps) / x["clock"]
        body = either(memory, torch.sqrt(cores**2 + latency**2), c["soft"])
        return torch.log(self.started(x, body, offsets))


def _row_kernel(x: Columns) -> tuple[Tensor, Tensor, Tensor]:
    """Threads of a block, rows of a block, and passes of the kernel that PyTorch runs.

    Softmax of up to 1024 columns keeps rows in registers and gives each to a warp; beyond, a block takes a
    row, with half as many threads as there are groups of four columns, at most 512. Layer normalisation,
    and what is not known, has blocks of 128 threads.
    """
    softmax = x["family"] == 2
    columns = x["columns"]
    groups = torch.clamp(torch.floor(columns / 4), 64, 1024)
    wide = torch.clamp(2 ** torch.ceil(torch.log2(groups / 2)), 32, 512)
    small = softmax & (columns <= 1024)
    block = torch.where(softmax & ~small, wide, torch.full_like(columns, 128))
    per_block = torch.where(small, torch.where(columns <= 128, 8.0, 4.0), torch.ones_like(columns))
    # On AMD GPUs rows of a multiple of four columns are kept in local memory.
    kept = small | (softmax & (x["amd"] == 1) & (columns % 4 == 0))
    return block, per_block, torch.where(kept, torch.ones_like(columns), x["passes"])
