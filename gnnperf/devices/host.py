"""This machine, as far as the kernel tells without running anything."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import platform
from pathlib import Path

from gnnperf.devices.cache import gnnperf_cache_dir
from gnnperf.devices.spec import DeviceSpec
from gnnperf.errors import GnnperfError, InputError

_ISA = {
    "x86_64": (("avx512f", "avx512"), ("avx2", "avx2"), ("avx", "avx"), ("sse2", "sse2")),
    "aarch64": (("sve2", "sve2"), ("sve", "sve"), ("asimd", "neon")),
}
"""Architecture -> (flag in /proc/cpuinfo, name in the fingerprint), the widest first."""

_CPUS = Path("/sys/devices/system/cpu")


def describe_host() -> DeviceSpec:
    """This machine: at once, with peaks only if `probe()` measured them before.

    Raises InputError on anything but Linux.
    """
    host = _describe()
    try:
        values = json.loads(probe_file(host).read_text())
        return DeviceSpec.from_dict(values, "cached probe")
    except (OSError, ValueError, GnnperfError):  # none, or of another version: as good as none
        return host


def probe_file(host: DeviceSpec) -> Path:
    """Where the measured description of a machine like `host` is kept."""
    bare = dataclasses.replace(host, memory_bytes=None)  # a kernel update moves it by a few pages
    name = hashlib.sha256(json.dumps(bare.to_dict()).encode()).hexdigest()[:16]
    return gnnperf_cache_dir() / f"host-{name}.json"


@functools.cache
def _describe() -> DeviceSpec:
    if platform.system() != "Linux":
        raise InputError(f"expected Linux, got {platform.system()}: gnnperf measures on Linux only")
    cpus = sorted(os.sched_getaffinity(0))
    info = _cpuinfo()
    arch = platform.machine()
    flags = set(info.get("flags", info.get("Features", "")).split())
    isa = next((name for flag, name in _ISA.get(arch, ()) if flag in flags), "scalar")
    caches = _caches(cpus)
    return DeviceSpec(
        kind="cpu",
        name=info.get("model name") or info.get("Model") or _device_tree_model() or f"unknown {arch}",
        arch=arch,
        isa=isa,
        cores=len({_core(cpu) for cpu in cpus}),
        threads=len(cpus),
        l1d_bytes=caches.get((1, "Data")),
        l2_bytes=caches.get((2, "Unified")),
        l3_bytes=caches.get((3, "Unified")),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        source="described by the kernel",
    )


def _cpuinfo() -> dict[str, str]:
    """The first processor of /proc/cpuinfo."""
    pairs = (line.partition(":") for line in _read(Path("/proc/cpuinfo")).splitlines())
    info: dict[str, str] = {}
    for key, _, value in pairs:
        info.setdefault(key.strip(), value.strip())
    return info


def _device_tree_model() -> str:
    return _read(Path("/proc/device-tree/model")).strip("\0 \n")


def _core(cpu: int) -> tuple[str, str]:
    topology = _CPUS / f"cpu{cpu}" / "topology"
    return _read(topology / "physical_package_id"), _read(topology / "core_id") or str(cpu)


def _caches(cpus: list[int]) -> dict[tuple[int, str], int]:
    """(level, type) -> bytes: of one core for levels 1 and 2, of all instances for the third."""
    instances: dict[tuple[int, str], dict[str, int]] = {}
    for cpu in cpus:
        for index in sorted((_CPUS / f"cpu{cpu}" / "cache").glob("index*")):
            size = _read(index / "size")
            if not size:  # some hypervisors list caches without their sizes
                continue
            key = int(_read(index / "level")), _read(index / "type")
            instances.setdefault(key, {})[_read(index / "shared_cpu_list")] = _bytes(size)
    return {
        (level, kind): sum(found.values()) if level >= 3 else max(found.values())
        for (level, kind), found in instances.items()
    }


def _bytes(text: str) -> int:
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1], 1)
    return int(text.rstrip("KMG")) * unit


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
