"""Restoring an array without moving it between processors."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gnnperf.devices import shared_library
from gnnperf.errors import GnnperfError
from gnnperf.measure.arrays import Bytes

SMALL_BYTES = 1 << 15
"""Less than that comes from another processor's cache in less time than a thread needs to take up work."""


def team_copy_library() -> str | None:
    """What `team_copy` loads; None where it cannot be compiled."""
    try:
        return str(shared_library(Path(__file__).with_suffix(".cpp"), "libgnnperf_team_copy.so"))
    except (GnnperfError, OSError, subprocess.SubprocessError):
        return None


def team_copy(library: str | None) -> Callable[[Bytes, Bytes], None]:
    """What copies the second array into the first, with all of OpenMP's threads where there is a `library`.

    A loop on several threads then finds its part of the array in the caches of its own processor, as where a
    program calls it again and again. Copied by one thread, all of it lies in one processor's cache, and
    reading it from there can take longer than the kernel.
    """
    if library is None:
        return np.copyto
    function = ctypes.CDLL(library).gnnperf_team_copy
    function.restype = None
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)

    def copy(to: Bytes, what: Bytes) -> None:
        if what.nbytes < SMALL_BYTES:
            np.copyto(to, what)
        else:
            function(to.ctypes.data, what.ctypes.data, what.nbytes)

    return copy
