"""NVIDIA GPUs of this machine: what their driver says of them, and what torch measures on them.

The properties come from the driver's own library and from `nvidia-smi`, so that they are read whatever build
of torch is installed. AMD GPUs are not looked for.
"""

from __future__ import annotations

import ctypes
import dataclasses
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gnnperf.devices.catalog import find_device
from gnnperf.devices.spec import DeviceSpec
from gnnperf.errors import MeasureError, first_line

_LIBRARY = "libcuda.so.1"
_SMI = ("nvidia-smi", "--query-gpu=pci.bus_id,driver_version,power.default_limit,clocks.max.sm",
        "--format=csv,noheader,nounits")  # fmt: skip
_TIMEOUT_S = 60.0
_ATTRIBUTES = {
    "shared_bytes_per_block": 97, "warp_threads": 10, "clock_khz": 13, "cores": 16, "memory_khz": 36,
    "bus_bits": 37, "l2_bytes": 38, "threads_per_core": 39, "major": 75, "minor": 76,
    "shared_bytes_per_core": 81, "registers_per_core": 82,
}  # fmt: skip
"""Numbers of CUdevice_attribute in cuda.h."""
_ARCH = {
    (3, 0): ("kepler", 192), (5, 0): ("maxwell", 128), (6, 0): ("pascal", 64), (6, 1): ("pascal", 128),
    (7, 0): ("volta", 64), (7, 5): ("turing", 64), (8, 0): ("ampere", 64), (8, 6): ("ampere", 128),
    (8, 9): ("ada", 128), (9, 0): ("hopper", 128), (10, 0): ("blackwell", 128),
}  # fmt: skip
"""From which compute capability on: family, and fp32 lanes of a multiprocessor (CUDA Programming Guide)."""
_BYTES = 1 << 29
"""Of each of the three arrays of the triad; a sixteenth of the memory where that is less."""
_SIDE = 8192
"""Of the square matrices whose product measures the peak."""
_ROUNDS = 10
"""Runs of each."""


@dataclass(frozen=True)
class FoundGpu:
    """A GPU of this machine. index: as CUDA counts. spec: the catalog's where it has one of this name, else
    what the driver says. driver: its version. clock_mhz: most that its multiprocessors run at."""

    index: int
    spec: DeviceSpec
    driver: str | None
    clock_mhz: float


def find_gpus() -> tuple[list[FoundGpu], str]:
    """The GPUs of this machine, and why there are none where there are none."""
    try:
        cuda = ctypes.CDLL(_LIBRARY)
    except OSError:
        return [], f"no NVIDIA driver here ({_LIBRARY} was not found)"
    if code := cuda.cuInit(0):
        return [], f"the NVIDIA driver sees no GPU (cuInit returned {code})"
    count = ctypes.c_int()
    cuda.cuDeviceGetCount(ctypes.byref(count))
    said = read_smi(_smi())
    found = [_describe(cuda, index, said) for index in range(count.value)]
    return found, "" if found else "the NVIDIA driver sees no GPU"


def _describe(cuda: Any, index: int, said: Mapping[str, Mapping[str, str]]) -> FoundGpu:
    device, value, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    text = ctypes.create_string_buffer(256)

    def ask(name: str, *arguments: Any) -> None:
        if code := getattr(cuda, name)(*arguments):
            raise MeasureError(f"{name} of GPU {index} returned {code}")

    ask("cuDeviceGet", ctypes.byref(device), index)
    ask("cuDeviceGetName", text, len(text), device)
    name = text.value.decode()
    ask("cuDeviceGetPCIBusId", text, len(text), device)
    smi = said.get(_bus(text.value.decode()), {})
    ask("cuDeviceTotalMem_v2", ctypes.byref(size), device)
    attributes = {}
    for key, number in _ATTRIBUTES.items():
        ask("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        attributes[key] = value.value
    power = _number(smi.get("power.default_limit", ""))
    spec = gpu_spec(name, size.value, attributes, power)
    return FoundGpu(index, spec, smi.get("driver_version"), attributes["clock_khz"] / 1e3)


def gpu_spec(
    name: str, memory_bytes: int, attributes: Mapping[str, int], power_w: float | None
) -> DeviceSpec:
    """A GPU by what its driver says; `attributes` as `_ATTRIBUTES` names them.

    One that the catalog knows is the catalog's: that also has the process and the memory's technology. Of
    another, the peak is that of its lanes at the highest clock, and the bandwidth that of its bus.
    """
    known = find_device(name, {})
    if known is not None:
        return dataclasses.replace(known, board_power_w=power_w or known.board_power_w)
    capability = attributes["major"], attributes["minor"]
    arch, lanes = _ARCH[max(since for since in _ARCH if since <= capability)]
    mhz = attributes["clock_khz"] / 1e3
    kept = ("cores", "l2_bytes", "threads_per_core", "shared_bytes_per_core", "shared_bytes_per_block",
            "registers_per_core", "warp_threads")  # fmt: skip
    values = {
        "kind": "gpu", "name": name, "vendor": "NVIDIA", "arch": arch,
        "isa": f"sm_{capability[0]}{capability[1]}",
        **{key: attributes[key] for key in kept},
        "memory_bytes": memory_bytes, "fp32_lanes_per_core": lanes, "boost_mhz": mhz,
        "board_power_w": power_w,
        "peak_gflops_fp32": 2 * lanes * attributes["cores"] * mhz / 1e3,
        "bandwidth_gbps": 2 * attributes["memory_khz"] * attributes["bus_bits"] / 8 / 1e6,
        "source": "read from the driver by gnnperf devices probe",
    }  # fmt: skip
    return DeviceSpec.from_dict(values, name)


def read_smi(text: str) -> dict[str, dict[str, str]]:
    """What `nvidia-smi` printed for `_SMI`, by bus address: driver version, watts, megahertz."""
    names = _SMI[1].partition("=")[2].split(",")[1:]
    found = {}
    for line in text.splitlines():
        address, *values = (cell.strip() for cell in line.split(","))
        if len(values) == len(names):
            found[_bus(address)] = dict(zip(names, values, strict=True))
    return found


def _smi() -> str:
    try:
        done = subprocess.run(_SMI, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return ""  # in containers it is often missing: power and driver version stay unknown
    return done.stdout


def _bus(address: str) -> str:
    """ "00000000:65:00.0" and "0000:65:00.0" are one."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # "[N/A]"
        return None


def measure_gpu(index: int) -> dict[str, float]:
    """What a GPU reaches: the triad of STREAM, and an fp32 product of large matrices without tensor cores.

    Raises MeasureError where torch was built without CUDA, or cannot use the GPU.
    """
    import torch

    if not torch.cuda.is_available():
        build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
        raise MeasureError(f"torch {torch.__version__} (built with {build}) cannot use the GPU")
    try:
        return _reached(torch, index)
    except RuntimeError as error:  # torch's OutOfMemoryError is one: others use the GPU, too
        raise MeasureError(f"the GPU cannot be measured: {first_line(error)}") from None


def _reached(torch: Any, index: int) -> dict[str, float]:
    with torch.cuda.device(index), torch.inference_mode():
        free = torch.cuda.mem_get_info(index)[0]
        elements = min(_BYTES, free // 16) // 4
        a, b, c = (torch.ones(elements, device="cuda") for _ in range(3))
        triad_s = times_s(lambda: torch.add(b, c, alpha=3.0, out=a), torch)[0]
        x, y = (torch.rand(_SIDE, _SIDE, device="cuda") for _ in range(2))
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            product_s = times_s(lambda: torch.matmul(x, y), torch)[0]
        finally:
            torch.set_float32_matmul_precision(before)
    return {
        "triad_gbps": 3 * 4 * elements / triad_s / 1e9,
        "product_gflops_fp32": 2 * _SIDE**3 / product_s / 1e9,
    }


def times_s(work: Callable[[], Any], torch: Any, runs: int = _ROUNDS) -> list[float]:
    """Seconds of runs between two events of the GPU each, after three to warm up; sorted."""
    for _ in range(3):
        work()
    found = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end) * 1e-3)
    return sorted(found)
