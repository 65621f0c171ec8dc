"""What limits a configuration on a GPU, computed: occupancy, waves, traffic per level, bank conflicts.

Counted as the programming guides of the vendors count: requests of a warp become 32-byte sectors, banks of
shared memory are 4 bytes wide and 32 of them. Estimates, to be corrected by what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gnnperf.devices import LAUNCH_GAP_S, DeviceSpec
from gnnperf.errors import InputError
from gnnperf.frontends.gpu_kernels.description import DOUBLES
from gnnperf.frontends.gpu_kernels.plan import Numbers, Plan
from gnnperf.frontends.gpu_kernels.traffic import SECTOR_BYTES, Traffic
from gnnperf.graph.vocabulary import FLOPS
from gnnperf.nests import Op, Statement
from gnnperf.nests.ir import subexpressions

BLOCKS_PER_CORE = 32
STATIC_SHARED_BYTES = 48 * 1024
"""Most that a kernel can declare at compile time on any GPU of today."""
REGISTERS_PER_THREAD = 255
REGISTERS_OF_ADDRESSES = 24
"""Registers that a thread needs beside those of elements it keeps: addresses, counters."""
NEEDED = (
    "cores", "fp32_lanes_per_core", "registers_per_core", "threads_per_core", "shared_bytes_per_core",
    "shared_bytes_per_block", "warp_threads", "peak_gflops_fp32", "bandwidth_gbps", "l2_bytes", "boost_mhz",
)  # fmt: skip


def check_gpu(device: DeviceSpec) -> None:
    """InputError where a device is no GPU, or lacks what the features need."""
    if device.kind != "gpu":
        raise InputError(f"{device.name}: expected a GPU, got a {device.kind}; see `gnnperf devices list`")
    if missing := [name for name in NEEDED if getattr(device, name) is None]:
        raise InputError(f"{device.name}: {missing[0]} is needed and not known; add it to the device's YAML")


ADDED = (
    "roofline_s", "estimate_s", "flops", "distinct_bytes",
    "t_flop", "t_special", "t_issue", "t_shared", "t_l1", "t_l2", "t_dram", "t_latency",
)  # fmt: skip
"""Features that add up over launches."""


def physical_features(plan: Plan, device: DeviceSpec) -> list[dict[str, Numbers]]:
    """Features of n configurations on a GPU, by name, for each launch of the plan; see `_Physics.features`.
    Those of ADDED are of all repeats of a launch together. Raises InputError."""
    check_gpu(device)
    several = sum(launch.repeats for launch in plan.launches) > 1
    least, found = np.where(several, LAUNCH_GAP_S, 0.0), []
    for launch in plan.launches:
        features = _Physics(launch, device).features()
        features["t_latency"] = np.maximum(features["t_latency"], least)
        features["estimate_s"] = np.maximum(features["estimate_s"], least)
        found.append(features | {name: features[name] * launch.repeats for name in ADDED})
    return found


def of_all_launches(plan: Plan, launches: Sequence[Mapping[str, Numbers]]) -> dict[str, Numbers]:
    """Of `physical_features` what a configuration has as a whole: ADDED, and whether every launch "fits"."""
    fit = [(f["fits"] > 0) | (launch.repeats == 0) for f, launch in zip(launches, plan.launches, strict=True)]
    added = {name: np.sum([features[name] for features in launches], axis=0) for name in ADDED}
    return added | {"fits": np.all(fit, axis=0).astype(float)}


class _Physics(Traffic):
    def __init__(self, plan: Plan, device: DeviceSpec) -> None:
        super().__init__(plan, device.warp_threads or 32)
        self.device = device
        self.work = plan.iterations(plan.level(""))

    def features(self) -> dict[str, Numbers]:
        """By name. Times are in seconds, of the resource alone, were nothing else in the way."""
        d, plan = self.device, self.plan
        total_threads = self.blocks * self.threads
        flops, operations, special, least_flop_s = self._operations()
        registers = self._registers()
        shared = self._shared_bytes()
        clock_hz = (d.boost_mhz or 1.0) * 1e6
        sectors, global_loads, coalesced = self.global_memory()
        bank_cycles, shared_loads, conflicts = self.shared_memory()
        block_bytes = self.block_bytes()
        distinct = self.distinct_bytes()

        limits = np.stack([
            np.full(plan.count, BLOCKS_PER_CORE, dtype=float),
            (d.threads_per_core or 1) // (self.warps * self.warp),
            (d.shared_bytes_per_core or 1) // np.maximum(shared, 1),
            (d.registers_per_core or 1) // np.maximum(registers * self.warps * self.warp, 1),
        ])  # fmt: skip
        resident = np.maximum(limits.min(axis=0), 0.25)
        fits = (shared <= min(d.shared_bytes_per_block or 1, STATIC_SHARED_BYTES)) & (self.threads <= 1024)
        active = np.minimum(resident, np.ceil(self.blocks / d.cores)) * self.warps
        occupancy = active * self.warp / (d.threads_per_core or 1)
        waves = self.blocks / (d.cores * resident)
        balance = (self.blocks / d.cores) / np.ceil(self.blocks / d.cores)
        tail = waves / np.ceil(waves)
        lane_use = self.threads / (self.warps * self.warp)

        issue = (d.fp32_lanes_per_core or 1) * d.cores * clock_hz
        instructions = operations + global_loads + shared_loads
        t_flop = total_threads / lane_use * operations / issue
        t_special = total_threads / lane_use * special * 4 / issue
        t_issue = total_threads / lane_use * instructions / issue
        t_shared = total_threads / self.warp / lane_use * bank_cycles / (d.cores * clock_hz)
        l1_bytes = total_threads / self.warp / lane_use * sectors * SECTOR_BYTES
        t_l1 = l1_bytes / (64.0 * d.cores * clock_hz)
        latencies = (
            operations / np.minimum(self._independent(), 8.0) * 4 + shared_loads * 8 + global_loads * 40
        )
        t_latency = np.ceil(waves) * latencies / clock_hz
        bandwidth = (d.bandwidth_gbps or 1.0) * 1e9
        l2_bytes = np.minimum(l1_bytes, np.maximum(self.blocks * block_bytes, distinct))
        t_l2 = l2_bytes / (4.0 * bandwidth)
        wave_bytes = block_bytes * np.minimum(self.blocks, d.cores * resident)
        missed = np.clip(wave_bytes / (d.l2_bytes or 1), 0.0, 1.0)
        dram_bytes = distinct + missed * np.maximum(l2_bytes - distinct, 0.0)
        t_dram = dram_bytes / bandwidth
        roofline = np.maximum(least_flop_s, distinct / bandwidth)

        ilp = self._independent()
        hidden = np.minimum(1.0, active * np.minimum(ilp, 8.0) / (4.0 * (d.fp32_lanes_per_core or 1) / 16.0))
        spilled = np.maximum(registers - REGISTERS_PER_THREAD, 0.0)
        pressure = registers * self.warps * self.warp / (d.registers_per_core or 1)
        worst = np.maximum.reduce([t_flop, t_special, t_issue, t_shared, t_l1, t_l2, t_dram])
        estimate = (
            (worst + 0.3 * (t_issue + t_shared + t_l2 + t_dram)) / np.maximum(hidden * balance, 0.02)
            * (1.0 + spilled / 64.0)
        )  # fmt: skip
        return {
            "roofline_s": roofline, "estimate_s": estimate, "flops": flops, "distinct_bytes": distinct,
            "blocks": self.blocks, "threads": self.threads, "warps": self.warps, "work": self.work,
            "lane_use": lane_use, "registers": registers, "register_pressure": pressure, "spilled": spilled,
            "shared_bytes": shared, "resident_blocks": resident, "occupancy": occupancy,
            "active_warps": active,
            "waves": waves, "tail": tail, "balance": balance, "fits": fits.astype(float),
            "t_flop": t_flop, "t_special": t_special, "t_issue": t_issue, "t_shared": t_shared, "t_l1": t_l1,
            "t_l2": t_l2, "t_dram": t_dram, "t_latency": t_latency, "missed": missed,
            "coalesced": coalesced, "conflicts": conflicts,
            "global_loads": global_loads, "shared_loads": shared_loads, "operations": operations,
            "operations_per_load": operations / np.maximum(global_loads + shared_loads, 1e-3),
            "independent": ilp, "hidden": hidden, "unrolled": plan.flat(plan.level("")),
            "block_bytes": block_bytes,
            "intensity": flops / np.maximum(distinct, 1.0), "staged": self._staged_share(),
            "threads_x": plan.iterations(x for x in plan.loops if x.about.bind == "thread.x"),
            "read_only": self._read_only(),
        }  # fmt: skip

    def _operations(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """FLOP in all, instructions of a thread (a product and a sum are one), those that are not additions
        or products, and seconds of the FLOP at the peaks of their types."""
        flops, instructions, special, least_s = (np.zeros(self.plan.count) for _ in range(4))
        single = self.device.peak_gflops_fp32 or 1.0
        double = self.device.peak_gflops_fp64 or single
        for statement, active in self.plan.statements:
            names = _operation_names(statement)
            count = sum(FLOPS.get(n, 0) for n in names)
            fused = min(sum(n == "mul" for n in names), sum(n in ("add", "sub") for n in names))
            hard = sum(n in ("exp", "log", "sqrt", "div", "pow", "sin", "cos", "tanh") for n in names)
            dtype = self.plan.description.buffers[statement.target.buffer].dtype
            wide = 8.0 if "64" in dtype else 1.0
            here = active * count * self.work * self.blocks * self.threads
            flops = flops + here
            least_s = least_s + here / ((double if dtype in DOUBLES else single) * 1e9)
            instructions = instructions + active * (len(names) - fused) * self.work * wide
            special = special + active * hard * self.work * wide
        return np.maximum(flops, 1.0), np.maximum(instructions, 1.0), special, least_s

    def _registers(self) -> Numbers:
        count = np.full(self.plan.count, float(REGISTERS_OF_ADDRESSES))
        for access in self.plan.writes:
            if access.buffer in self.plan.description.registers:
                count = count + self.kept(access) * self._words(access.buffer)
        operands = np.zeros(self.plan.count)
        for access, active in self.plan.reads:
            if access.buffer in self.plan.description.registers:
                count = count + active * self.kept(access) * self._words(access.buffer)
            else:
                # The compiler keeps in registers what the two innermost unrolled loops read.
                operands = operands + active * np.minimum(self.kept(access), 32.0) * self._words(
                    access.buffer
                )
        count = count + operands
        asked = self.plan.description.blocks_per_core(self.plan.values, "blocks_per_core")
        granted = (self.device.registers_per_core or 1) / np.maximum(asked * self.threads, 1)
        return np.where(asked > 0, np.minimum(count, np.maximum(granted, 16.0)), count)

    def _shared_bytes(self) -> Numbers:
        total = np.zeros(self.plan.count)
        for stage in self.plan.stages:
            elements = np.prod([t.astype(float) for t in stage.tile[:-1]], axis=0) * (
                stage.tile[-1] + stage.pad
            )
            total = total + stage.active * elements * stage.copies * self.element_bytes(stage.about.buffer)
        return total

    def _independent(self) -> Numbers:
        """Results that a thread works on at the same time."""
        return np.maximum.reduce([self.kept(access) for access in self.plan.writes])

    def _staged_share(self) -> Numbers:
        active = [stage.active.astype(float) for stage in self.plan.stages]
        return np.mean(active, axis=0) if active else np.zeros(self.plan.count)

    def _read_only(self) -> Numbers:
        buffers = self.plan.description.buffers
        asked = [(b.read_only(self.plan.values, name) != 0).astype(float) for name, b in buffers.items()]
        return np.sum(asked, axis=0)

    def _words(self, buffer: str) -> float:
        return max(1.0, self.element_bytes(buffer) / 4)


def _operation_names(statement: Statement) -> list[str]:
    names = [e.name for e in subexpressions(statement.value) if isinstance(e, Op)]
    return names + ([statement.reduce] if statement.reduce else [])
