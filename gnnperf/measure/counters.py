"""Hardware counters of this process through perf_event, where the kernel and the machine allow it.

Absent, not zero, where they do not: virtual machines seldom expose them, and
/proc/sys/kernel/perf_event_paranoid above 2 forbids them to ordinary users.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

_SYSCALL = {"x86_64": 298, "aarch64": 241}  # perf_event_open
_HARDWARE, _SOFTWARE = 0, 1  # perf_type_id
_ATTRIBUTE_BYTES = 64  # PERF_ATTR_SIZE_VER0
_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 0, 1 << 5, 1 << 6
_ENABLE, _DISABLE = 0x2400, 0x2401  # PERF_EVENT_IOC_*

HARDWARE_EVENTS = {
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
    "cache_references": (_HARDWARE, 2),
    "cache_misses": (_HARDWARE, 3),
    "branches": (_HARDWARE, 4),
    "branch_misses": (_HARDWARE, 5),
}
"""Name in a profile -> (type, config) of perf_event_open(2)."""

SOFTWARE_EVENTS = {"task_clock_ns": (_SOFTWARE, 1), "page_faults": (_SOFTWARE, 2)}
"""Counted by the kernel itself, so available on any machine."""


class Counters:
    """Counts events in user space, over all threads that exist when it is opened.

    `with counters: ...` counts the block; `counters.values` then holds the totals. Scaled by the
    share of time an event was on a hardware counter when the kernel had to share counters.
    """

    def __init__(self, descriptors: Mapping[str, list[int]]) -> None:
        self._descriptors = descriptors
        self.values: dict[str, float] = {}

    @classmethod
    def open(cls, events: Mapping[str, tuple[int, int]]) -> Counters | None:
        """Counters of the events this machine can count; None when there are none."""
        threads = [int(task.name) for task in Path("/proc/self/task").iterdir()]
        found = {name: _open_all(kind, config, threads) for name, (kind, config) in events.items()}
        usable = {name: descriptors for name, descriptors in found.items() if descriptors}
        return cls(usable) if usable else None

    def __enter__(self) -> Counters:
        self._command(_ENABLE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._command(_DISABLE)
        for name, descriptors in self._descriptors.items():
            total = 0.0
            for descriptor in descriptors:
                value, enabled, running = struct.unpack("<3Q", os.read(descriptor, 24))
                total += value * enabled / running if running else 0.0
                os.close(descriptor)
            self.values[name] = total

    def _command(self, request: int) -> None:
        for descriptors in self._descriptors.values():
            for descriptor in descriptors:
                fcntl.ioctl(descriptor, request, 0)


def _open_all(kind: int, config: int, threads: list[int]) -> list[int]:
    """One descriptor per thread that has not ended meanwhile, or none at all."""
    opened: list[int] = []
    for thread in threads:
        descriptor = _perf_event_open(kind, config, thread)
        if descriptor < 0 and ctypes.get_errno() == errno.ESRCH:
            continue
        if descriptor < 0:
            for other in opened:
                os.close(other)
            return []
        opened.append(descriptor)
    return opened


def _perf_event_open(kind: int, config: int, thread: int) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        return -1
    flags = _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
    with_times = 1 | 2  # PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING
    attribute = struct.pack("<IIQQQQQIIQ", kind, _ATTRIBUTE_BYTES, config, 0, 0, with_times, flags, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(number, attribute, thread, -1, -1, 0))
