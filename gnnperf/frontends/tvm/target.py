"""TVM targets: this machine's processors, with the environment TVM's runtime needs, and any NVIDIA GPU."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from gnnperf.devices import DeviceSpec, list_devices, load_device
from gnnperf.errors import InputError
from gnnperf.measure.confine import available_threads, thread_environment

_MODELS: tuple[tuple[str, str, frozenset[str]], ...] = tuple(
    (vendor, mcpu, frozenset(flags.split()))
    for vendor, mcpu, flags in (
        ("AuthenticAMD", "znver5", "avx512f avx512_vnni avx512_bf16 avx512_vp2intersect avx_vnni"),
        ("AuthenticAMD", "znver4", "avx512f avx512_vnni avx512_bf16"),
        ("AuthenticAMD", "znver3", "avx2 fma vaes"),
        ("GenuineIntel", "sapphirerapids", "avx512f avx512_vnni avx512_bf16 avx512_fp16 amx_int8 avx_vnni"),
        ("GenuineIntel", "icelake-server", "avx512f avx512_vnni avx512_vbmi2 avx512_bitalg gfni"),
        ("GenuineIntel", "cascadelake", "avx512f avx512bw avx512vl avx512_vnni"),
        ("", "x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"),
        ("", "x86-64-v3", "avx2 fma bmi2"),
        ("", "x86-64", ""),
    )
)
"""Vendor, LLVM's name, flags of /proc/cpuinfo it relies on: the first that fits. By flags, because a virtual
machine may report any model number, by which LLVM's own detection goes."""

_BLOCK_LIMITS = {
    "max_threads_per_block": 1024,
    "max_shared_memory_per_block": 48 << 10,
    "registers_per_block": 65536,
    "thread_warp_size": 32,
}
"""Of a block of threads, the same from compute capability 5.0 on. Shared memory: that kernels declare; what
is asked for at launch may be more (CUDA C++ Programming Guide, "Compute Capabilities")."""

_ALONE = {"sm_90": "sm_90a", "sm_100": "sm_100a"}
"""Architectures with instructions of their own alone, and the name under which code may use them."""


def host_mcpu() -> str:
    """LLVM's name of the richest processor whose instructions this machine has."""
    vendor, flags = _vendor_and_flags()
    return next(mcpu for who, mcpu, needed in _MODELS if who in ("", vendor) and needed <= flags)


def host_target(threads: int | None = None, mcpu: str | None = None) -> Any:
    """A `tvm.target.Target` for this machine. threads: cores to schedule for (default: those available)."""
    import tvm

    cores = threads or available_threads()
    return tvm.target.Target({"kind": "llvm", "mcpu": mcpu or host_mcpu(), "num-cores": cores})


def cuda_target(name: str) -> Any:
    """A `tvm.target.Target` for an NVIDIA GPU, which need not be here: one of the device catalog ("h100"), or
    an architecture ("sm_80", "sm_90a"). Its host code runs on every x86-64 machine with AVX2.

    All attributes are given, so that nothing asks a driver. Raises InputError.
    """
    import tvm

    device = _gpu_of_arch(name) if name.startswith("sm_") else load_device(name)
    if not device.isa.startswith("sm_"):
        raise InputError(f"expected an NVIDIA GPU or an architecture such as sm_80, got {name!r}")
    arch = name if name.startswith("sm_") else _ALONE.get(device.isa, device.isa)
    cache = {"l2_cache_size_bytes": device.l2_bytes} if device.l2_bytes else {}
    host = {"kind": "llvm", "mcpu": "x86-64-v3"}
    return tvm.target.Target({"kind": "cuda", "arch": arch, **_BLOCK_LIMITS, **cache}, host=host)


def _gpu_of_arch(arch: str) -> DeviceSpec:
    """The catalog's first GPU of an architecture."""
    known = {device.isa: device for device in reversed(list_devices().values()) if device.isa[:3] == "sm_"}
    if arch.removesuffix("a") not in known:
        raise InputError(f"expected one of {', '.join(sorted(known))}, got {arch!r}; or name a GPU")
    return known[arch.removesuffix("a")]


def has_vnni(mcpu: str | None = None) -> bool:
    """Whether the target has AVX-512's instruction for four-way dot products of bytes."""
    import tvm

    features = tvm.get_global_func("target.target_has_feature")
    return bool(features("avx512vnni", host_target(1, mcpu)))


def set_runtime_threads(threads: int | None = None) -> int:
    """Have TVM's runtime, not yet used in this process, run on so many threads (default: those available):
    by itself it takes half of the processors. Returns the number."""
    count = threads or available_threads()
    wanted = {key: n for key, n in thread_environment(count).items() if key.endswith("NUM_THREADS")}
    os.environ.update(wanted, TVM_NUM_THREADS=str(count))  # OMP_PROC_BIND would pin this very process
    return count


@functools.cache
def _vendor_and_flags() -> tuple[str, frozenset[str]]:
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields.get("vendor_id", ""), frozenset(fields.get("flags", "").split())
