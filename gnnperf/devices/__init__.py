"""The machine and its neighbours: what a device is, and what this one can do."""

from gnnperf.devices.cache import gnnperf_cache_dir
from gnnperf.devices.lock import MachineLock
from gnnperf.devices.toolchain import find_compiler

__all__ = ["MachineLock", "find_compiler", "gnnperf_cache_dir"]
