"""Matrix products: tiles in waves over the multiprocessors, main memory, and the power of the board."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from gnnperf.nn.runtime.columns import LIBRARIES, Columns, legacy
from gnnperf.nn.runtime.physics import (
    AMD_SHARE,
    FIRST_HBM,
    Offsets,
    Physics,
    bytes_of,
    either,
    gain_of,
    product_peak,
)

TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 64), (128, 32), (32, 128), (64, 32), (32, 32))
"""Output tiles that libraries have fp32 kernels for: along n, and along m."""
SPLITS = (1, 4)
"""Parts that the reduction may be split into."""
VARIANTS = tuple((along_n, along_m, parts) for along_n, along_m in TILES for parts in SPLITS)
SINGLE_ISSUE = -0.25
"""ln of the share of its peak that a multiprocessor reaches which starts one instruction a cycle: loads and
address arithmetic take slots from multiplications. No such GPU is in the training split, hence a constant."""
MATRIX_UNITS = -0.25
"""ln of the share of their peak that products in other dtypes than fp32 reach: not measured, of the order
that vendors publish for large ones."""
SPAN_BYTES, SPAN_SLOPE = 2.0**27, 4.0
"""Operands of linear layers that lie over more memory than this slow NVIDIA's GPUs before Volta down, by a
fitted factor: training rows of P100 show the step. Addresses are likely translated anew."""
VECTOR_BYTES = 32.0
"""Of a matrix that is multiplied by a vector, what a multiprocessor takes in a cycle at most: half of what
its first cache gives. No such product is in the tables; memory is slower, but for matrices in the last
cache."""
SHRINKING = 1.15
"""Exponent of the process in joules: foundries claim 65% less power from 16 to 7 nm, 30% from 7 to 5."""
_REFERENCE = 128 * 128


class ContractionTime(Physics):
    """Of the tiles that a library runs, the fastest is taken, as it tries to.

    Energy is another roofline: joules per FLOP grow with the feature size of the process, and no kernel
    that runs for long can use more than the board's power, less what it draws anyway; short ones run on
    before the limit is felt.

    Of other dtypes nothing was measured. A board is taken to give the peak of each at the same power, and the
    latency of a step of the reduction to lie between that of fp32 and one shorter by as much as it is faster.
    """

    start: ClassVar = {
        "rate": -0.1, "rate_amd": -0.35, **{f"tile{i}": -0.05 * max(i - 1, 0) for i in range(len(TILES))},
        "latency": 3.5, "tile_cycles": 7.0, "fill": 3.0, "launch": -10.2, "soft": 1.0, "soft_launch": 1.5,
        "flop_energy": 0.45, "byte_energy": 3.0, "hbm_energy": -0.8, "idle": 2.7, "delay": -5.4,
        "at_once": -1.0, "at_once_linear": 1.0, "memory": -0.2, "gddr": 0.0, "first_hbm": FIRST_HBM,
        "rereads": -2.0,
        "launch_linear": 0.4, "launch_amd": 0.0, "begin": -11.2, "apart": 0.0,
    }  # fmt: skip
    prior: ClassVar = {
        "launch_linear": 0.02, "launch_amd": AMD_SHARE,
        **{f"tile{i}": 0.3 for i in range(len(TILES))}, "rate": 0.1, "rate_amd": 0.1, "flop_energy": 0.2,
        "byte_energy": 0.1, "hbm_energy": 0.1, "idle": 0.1, "delay": 0.1, "at_once_linear": 0.02,
        "memory": 0.5, "gddr": 10.0, "first_hbm": 0.1, "rereads": 0.1, "apart": 0.002,
    }  # fmt: skip
    varying: ClassVar = ("launch", "rate")

    runs: Tensor

    def __init__(self) -> None:
        """runs: bool[LIBRARIES, 2, VARIANTS], which kernels a library runs for batched products, and for
        linear layers: any, until its launches were seen."""
        super().__init__()
        self.register_buffer("runs", torch.ones(len(LIBRARIES), 2, len(VARIANTS), dtype=torch.bool))

    def forward(self, x: Columns, offsets: Offsets) -> Tensor:
        c = self.constants
        linear = (x["family"] == 1).double()
        unlimited, powered = self.limits(x, offsets)
        limited = either(powered, unlimited, torch.full_like(unlimited, 8.0).log())
        at_once = torch.sigmoid(c["at_once"] + c["at_once_linear"] * linear)
        felt = at_once + (1 - at_once) * unlimited / (unlimited + torch.exp(c["delay"]))
        if "sequence" in x:
            felt = torch.where(x["sequence"] == 1, 0.0, felt)
        return torch.log(unlimited * (1 - felt) + limited * felt)

    def limits(self, x: Columns, offsets: Offsets) -> tuple[Tensor, Tensor]:
        """Seconds without a limit of power, and seconds in which the board can give the energy."""
        c = self.constants
        tiles, padding = self.tiles(x, offsets)
        rereads = self.rereads(x)
        traffic = x["read_bytes"] + x["written_bytes"]
        beyond_cache = torch.sigmoid(3 * torch.log(traffic / x["l2"]))
        memory = (traffic * beyond_cache + rereads) / self.bandwidth(x, offsets)
        body = either(tiles, memory, c["soft"])
        unlimited = self.started(x, body, offsets)
        return unlimited, self.joules(x, padding, traffic + rereads) / self.spare_power(x)

    def spare_power(self, x: Columns) -> Tensor:
        """Watts that are left to a kernel: the board draws `idle` whatever runs, at most half its limit."""
        return x["power"] - torch.minimum(torch.exp(self.constants["idle"]), x["power"] / 2)

    def tiles(self, x: Columns, offsets: Offsets) -> tuple[Tensor, Tensor]:
        """Seconds of the fastest tile, and FLOPs done over FLOPs needed with it. A product with a vector has
        no tiles: all threads share the matrix, which is read once."""
        c = self.constants
        batch, m, n, k = x["batch"], x["m"], x["n"], x["k"]
        share = self.get("rate", offsets) + c["rate_amd"] * x["amd"] + SINGLE_ISSUE * x["single_issue"]
        if "gain" in x:
            share = torch.where(gain_of(x) == 1, share, self.get("rate", offsets) + MATRIX_UNITS)
        core_flops = product_peak(x) / x["cores"] * torch.exp(share)
        # [variants, n]: every tile, with the reduction whole and split.
        tile_n, tile_m, parts = (
            torch.tensor(v, dtype=torch.float64)[:, None] for v in zip(*VARIANTS, strict=True)
        )
        rate = torch.stack([c[f"tile{i}"] for i in range(len(TILES)) for _ in SPLITS])[:, None]
        size = tile_m * tile_n
        count = batch * torch.ceil(m / tile_m) * torch.ceil(n / tile_n) * parts
        # What fills the pipeline at the start of a tile is hidden where the reduction is long.
        whole = torch.ceil(k / 8) * 8 / parts
        depth = torch.sqrt(whole**2 + torch.exp(2 * c["fill"]))
        throughput = torch.ceil(count / x["cores"]) * (2 * size * depth / (core_flops * torch.exp(rate)))
        waves = torch.ceil(count / (x["cores"] * torch.clamp(torch.floor(_REFERENCE / size), 1, 8)))
        step = torch.exp(c["latency"]) / torch.sqrt(gain_of(x))
        latency = waves * depth * step * torch.sqrt(size / _REFERENCE) / x["clock"]
        time = torch.sqrt(torch.sqrt((throughput * throughput) ** 2 + (latency * latency) ** 2))
        partial_sums = (parts > 1) * batch * m * n * 8 * parts / (0.7 * x["bandwidth"])
        time = time + torch.exp(c["tile_cycles"]) / x["clock"] + partial_sums
        known = (x["family"] >= 0) & (x["family"] < 2)
        runs = self.runs[x["library"].long(), x["family"].clamp(0, 1).long()] | ~known[:, None]
        fastest, which = torch.where(runs.T, time, torch.inf).min(0)
        padding = (count * size * whole / (batch * m * n * k)).gather(0, which[None])[0]
        vector = torch.minimum(m, n) == 1
        streamed = bytes_of(x) * batch * k * torch.maximum(m, n) / (x["cores"] * x["clock"] * VECTOR_BYTES)
        fastest = torch.where(vector, torch.minimum(fastest, streamed), fastest)
        padding = torch.where(vector, 1.0, padding)
        # Rows of both operands of a linear layer lie k elements apart.
        span = torch.log(bytes_of(x) * (m + n) * k / SPAN_BYTES)
        apart = torch.sigmoid(SPAN_SLOPE * span) * legacy(x) * (x["family"] == 1)
        return fastest * torch.exp(c["apart"] * apart), padding

    def rereads(self, x: Columns) -> Tensor:
        """Bytes fetched again because the operands do not fit the cache: by how much a product is larger
        than what one wave of tiles covers."""
        m, n, k = x["m"], x["n"], x["k"]
        side = torch.sqrt(x["cores"] * _REFERENCE)
        first, second = m * k * torch.clamp(n / side, min=1), n * k * torch.clamp(m / side, min=1)
        size = (x["read_bytes"] + x["written_bytes"]) / x["batch"]
        share = torch.sigmoid(2 * torch.log(size / x["l2"])) * torch.exp(self.constants["rereads"])
        return bytes_of(x) * x["batch"] * (first + second - m * k - n * k) * share

    def joules(self, x: Columns, padding: Tensor, moved: Tensor) -> Tensor:
        """flop_energy: picojoules per FLOP and nanometre of process; byte_energy: picojoules per bit."""
        flops = 2 * x["batch"] * x["m"] * x["n"] * x["k"] * torch.sqrt(padding)
        process = 12 * (x["process"] / 12) ** SHRINKING
        per_flop = torch.exp(self.constants["flop_energy"]) * process * 1e-12 / gain_of(x)
        # Stacks of HBM lie beside the GPU: a bit needs about half of what it needs over a board.
        per_bit = self.constants["byte_energy"] + self.constants["hbm_energy"] * (1 - x["gddr"])
        return flops * per_flop + moved * 8e-12 * torch.exp(per_bit)
