"""The machine and its neighbours: what a device is, what this one can do, one timed job at a time."""

from gnnperf.devices.cache import gnnperf_cache_dir
from gnnperf.devices.catalog import (
    find_device,
    known_device,
    list_devices,
    load_device,
    peer,
    read_device,
    read_devices,
)
from gnnperf.devices.host import describe_host
from gnnperf.devices.lock import MachineLock
from gnnperf.devices.nvidia import FoundGpu, find_gpus, measure_gpu
from gnnperf.devices.probe import probe
from gnnperf.devices.quantity import Provenance
from gnnperf.devices.spec import LAUNCH_GAP_S, DeviceSpec
from gnnperf.devices.toolchain import find_compiler, shared_library
from gnnperf.devices.vectors import AVX512, VectorUnit, vectors_of

__all__ = [
    "AVX512",
    "LAUNCH_GAP_S",
    "DeviceSpec",
    "FoundGpu",
    "MachineLock",
    "Provenance",
    "VectorUnit",
    "describe_host",
    "find_compiler",
    "find_device",
    "find_gpus",
    "gnnperf_cache_dir",
    "known_device",
    "list_devices",
    "load_device",
    "measure_gpu",
    "peer",
    "probe",
    "read_device",
    "read_devices",
    "shared_library",
    "vectors_of",
]
