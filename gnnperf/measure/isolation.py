"""What candidates and their compilers may ask of the kernel.

The process of a candidate: memory, threads, time, to read files and to write to what is open. All else is
refused: to write to others, to reach the network or other processes, to start programs, to raise its own
limits. A seccomp filter, see seccomp(2): it cannot be taken off, holds for all threads, and costs 0.6 ms a
process and 40 ns a system call.

A compiler: also programs and processes of its own, and to write below its folder. A ruleset of Landlock, see
landlock(7), and a smaller filter, both of one thread and of what it starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_ARCHITECTURE = 0xC000003E  # AUDIT_ARCH_X86_64
_X32 = 0x40000000  # from here on, calls of another interface of the same kernel

_FREE = {
    # files and what else is open
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8,
    "pread64": 17, "readv": 19, "writev": 20, "access": 21, "dup": 32, "sendto": 44, "recvfrom": 45,
    "sendmsg": 46, "recvmsg": 47, "shutdown": 48, "getcwd": 79, "readlink": 89, "statfs": 137,
    "fstatfs": 138, "getdents64": 217, "fadvise64": 221, "newfstatat": 262, "readlinkat": 267,
    "faccessat": 269, "ppoll": 271, "statx": 332, "faccessat2": 439,
    # memory
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25, "msync": 26, "mincore": 27,
    "madvise": 28, "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "membarrier": 324,
    # threads, signals to itself, the end
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24, "gettid": 186,
    "sigaltstack": 131, "futex": 202, "sched_setaffinity": 203, "sched_getaffinity": 204, "exit": 60,
    "sched_getparam": 143, "sched_getscheduler": 145, "sched_get_priority_max": 146,
    "sched_get_priority_min": 147, "arch_prctl": 158, "set_tid_address": 218, "restart_syscall": 219,
    "exit_group": 231, "set_robust_list": 273, "get_robust_list": 274, "getcpu": 309, "rseq": 334,
    # time, numbers of its own
    "select": 23, "pause": 34, "nanosleep": 35, "getpid": 39, "uname": 63, "gettimeofday": 96,
    "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104,
    "geteuid": 107, "getegid": 108, "getppid": 110, "getpriority": 140, "clock_gettime": 228,
    "clock_getres": 229, "clock_nanosleep": 230, "pselect6": 270, "perf_event_open": 298,
    "getrandom": 318,
}  # fmt: skip
"""Allowed with any arguments: numbers of x86-64."""

_THREAD = 0x10000  # CLONE_THREAD: not a process
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_WHOLE = 0xFFFFFFFF


def _allowed_if(pid: int) -> Iterable[tuple[int, int, int, tuple[int, ...]]]:
    """(number, argument, mask, values): allowed where these bits of the argument are one of the values."""
    yield 2, 1, _WRITING, (0,)  # open
    yield 257, 2, _WRITING, (0,)  # openat
    yield 16, 1, _WHOLE, (0x5401, 0x2400, 0x2401, 0x2403)  # ioctl: is it a terminal? counters on, off, reset
    yield 56, 0, _THREAD, (_THREAD,)  # clone
    yield 62, 0, _WHOLE, (pid,)  # kill
    yield 72, 1, _WHOLE, (0, 1, 2, 3, 1030)  # fcntl: duplicates and flags; no signals when something comes
    yield 157, 0, _WHOLE, (15, 16, 0x53564D41)  # prctl: names of threads and of memory
    yield 234, 0, _WHOLE, (pid,)  # tgkill, as abort does


_PRLIMIT64, _CLONE3, _SECCOMP = 302, 435, 317
_RETURN_ALLOW, _RETURN_ERRNO = 0x7FFF0000, 0x00050000
_SET_MODE_FILTER, _GET_ACTION_AVAILABLE = 1, 2
_ALL_THREADS, _KEEP_SPECULATING = 1, 4  # the second: a mitigation that slows all code down stays off
_PR_SET_NO_NEW_PRIVS = 38

_REFUSED_TO_COMPILERS = {
    "socket": 41, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
    "io_uring_setup": 425,
}  # fmt: skip
"""The network, memory of other processes, and calls that no filter sees."""

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # on every architecture
_LANDLOCK_VERSION, _PATH_BENEATH = 1, 1
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGES = (_WRITE_FILE, *(1 << bit for bit in range(4, 13)))  # and remove and make what is in folders
_NEWER = ((2, 1 << 13), (3, _TRUNCATE))  # interface, and what it can refuse: moves between folders, cutting
_DEVICES = 1 << 6 | 1 << 11  # nobody makes these
_TCP, _SCOPES = 3, 3  # bind, connect; sockets and signals of others

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def isolate() -> None:
    """From now on, this process only computes: what else it asks for fails with EPERM.

    Does nothing where `not_isolated` says why. Raises OSError where the kernel does not take the filter.
    """
    if not _no_filter():
        _set_filter(_filter(os.getpid()), _ALL_THREADS | _KEEP_SPECULATING)


def confine(*writable: str) -> None:
    """From now on, this thread and what it starts change no files but these and what is below these folders,
    and reach neither the network nor other processes: that fails with EACCES or EPERM.

    Does nothing where `not_isolated` says why. Raises OSError where one of the paths does not exist, or the
    kernel does not take the rules.
    """
    version = _landlock_version()
    if version > 0:
        _restrict(version, writable)
    if not _no_filter():
        _set_filter(_refusing(_REFUSED_TO_COMPILERS.values()), _KEEP_SPECULATING)


def confined(start: Callable[[], T], *writable: str) -> T:
    """What `start` returns or raises in a thread of its own, which is confined, and so is what it starts."""

    def work() -> T:
        confine(*writable)
        return start()

    with ThreadPoolExecutor(1) as alone:
        return alone.submit(work).result()


def not_isolated() -> str:
    """Why `isolate` or `confine` does not do all on this machine, in one line; empty where both work."""
    if reason := _no_filter():
        return reason
    if _landlock_version() < 1:
        return "compilers are not kept from files: this kernel has no Landlock, or it is off"
    return ""


def _no_filter() -> str:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return (
            "candidates are not kept from files and the network:"
            f" that works on Linux for x86-64, and this is {platform.system()} for {platform.machine()}"
        )
    action = ctypes.c_uint32(_RETURN_ERRNO)
    if _libc.syscall(_SECCOMP, _GET_ACTION_AVAILABLE, 0, ctypes.byref(action)) != 0:
        return (
            "candidates are not kept from files and the network: this kernel lets nobody set seccomp filters"
        )
    return ""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def _landlock_version() -> int:
    """Of the kernel's interface, from 1 on; -1 without it."""
    if sys.platform != "linux":
        return -1
    return int(_libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION))


def _restrict(version: int, writable: Iterable[str]) -> None:
    changes = sum(_CHANGES) | sum(right for since, right in _NEWER if version >= since)
    rules = _Rules(changes, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    known = ctypes.sizeof(ctypes.c_uint64) * (1 if version < 4 else 2 if version < 6 else 3)
    ruleset = int(_libc.syscall(_LANDLOCK_CREATE, ctypes.byref(rules), ctypes.c_size_t(known), 0))
    _call(min(ruleset, 0))
    try:
        for path in (os.devnull, *writable):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                below = changes & ~_DEVICES if Path(path).is_dir() else changes & (_WRITE_FILE | _TRUNCATE)
                rule = _Beneath(below, descriptor)
                _call(_libc.syscall(_LANDLOCK_ADD, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
            finally:
                os.close(descriptor)
        _call(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _call(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)


def _set_filter(code: bytes, flags: int) -> None:
    memory = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(memory))
    _call(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _call(_libc.syscall(_SECCOMP, _SET_MODE_FILTER, flags, ctypes.byref(program)))


def _call(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"isolating a candidate: {os.strerror(number)}")


# Instructions of the classic packet filter on `struct seccomp_data`: number, architecture, 8 bytes of
# instruction pointer, arguments of 8 bytes.
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANSWER = 0x20, 0x54, 0x15, 0x35, 0x06


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


_ALLOW, _REFUSE = _step(_ANSWER, _RETURN_ALLOW), _step(_ANSWER, _RETURN_ERRNO | errno.EPERM)
_ONLY_X86_64 = (
    _step(_LOAD, 4) + _step(_EQUAL, _ARCHITECTURE, 1, 0) + _REFUSE
    + _step(_LOAD, 0) + _step(_AT_LEAST, _X32, 0, 1) + _REFUSE
)  # fmt: skip


def _of(number: int, body: bytes) -> bytes:
    return _step(_EQUAL, number, 0, len(body) // 8) + body


def _filter(pid: int) -> bytes:
    def argument(n: int, high: bool = False) -> bytes:
        return _step(_LOAD, 16 + 8 * n + 4 * high)

    steps = [_ONLY_X86_64, *(_of(number, _ALLOW) for number in _FREE.values())]
    for number, n, mask, values in _allowed_if(pid):
        found = b"".join(_step(_EQUAL, value, 0, 1) + _ALLOW for value in values)
        steps.append(_of(number, argument(n) + _step(_AND, mask) + found + _REFUSE))
    # Limits may be read: there are no new ones.
    none = _step(_EQUAL, 0, 1, 0) + _REFUSE
    steps.append(_of(_PRLIMIT64, argument(2) + none + argument(2, high=True) + none + _ALLOW))
    steps.append(_of(_CLONE3, _step(_ANSWER, _RETURN_ERRNO | errno.ENOSYS)))  # libraries then call clone
    return b"".join([*steps, _REFUSE])


def _refusing(numbers: Iterable[int]) -> bytes:
    return b"".join([_ONLY_X86_64, *(_of(number, _REFUSE) for number in numbers), _ALLOW])
