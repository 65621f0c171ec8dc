"""What a child may use: memory, threads, files, processors; and that it dies with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from pathlib import Path

from gnnperf.errors import InputError

_PR_SET_PDEATHSIG = 1
_ARENA_BYTES = 128 << 20  # address space that malloc reserves for one more thread
_BLAS_BYTES = 32 << 20  # a buffer of OpenBLAS: one for every thread that calls it, and one more

MAX_THREADS = 1024
"""Far beyond it, libgomp ends the process, and the kernel would seem to have crashed."""

_libc = ctypes.CDLL(None, use_errno=True)


def thread_environment(threads: int) -> dict[str, str]:
    """Environment that pins `threads` OpenMP threads to distinct processors, as far apart as possible.

    OpenBLAS gets none of its own: emitted code calls it on OpenMP threads, and its own would all be
    pinned to the processor of the thread that opens it.
    """
    n = str(threads)
    return {
        "OMP_NUM_THREADS": n,
        "OMP_DYNAMIC": "false",
        "OMP_PROC_BIND": "spread",
        "OMP_PLACES": "threads",
        "MKL_NUM_THREADS": n,
        "OPENBLAS_NUM_THREADS": "1",
    }


def available_threads() -> int:
    """OMP_NUM_THREADS where the user set it, else the processors this process may run on.

    Raises InputError for more threads than a process can start.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if not wanted.isdecimal() or int(wanted) == 0:
        return len(os.sched_getaffinity(0))
    if int(wanted) > MAX_THREADS:
        raise InputError(
            f"OMP_NUM_THREADS: expected at most {MAX_THREADS} threads, got {wanted}; choose fewer"
        )
    return int(wanted)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the one that forked it dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call
        os._exit(1)


SUPERVISOR, MEASURED = 2, 1
"""Real-time priorities: a supervisor can always end the child that it follows."""


def prefer_this_process(priority: int = MEASURED) -> None:
    """Run before all ordinary processes, where we may: a pinned OpenMP thread that waits for its
    processor keeps its whole team spinning at the next barrier, and a busy machine then makes every
    parallel schedule look a hundred times slower than it is. Niceness does not help: it is weighed
    within a session only. The kernel leaves ordinary processes 5% of each second, so a candidate
    that loops for ever slows the machine down until its time limit, but does not stop it.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    except OSError:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -20)


def prefer_others() -> None:
    """Undo `prefer_this_process`: what is not being timed must not hold up what is."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def limit_memory(allowance_bytes: int, threads: int) -> int:
    """Let this process allocate `allowance_bytes` more than now, or 80% of what the machine has free.

    Returns the bytes allowed. A limit on data catches what is written to; one on address space what
    is not counted as data (shared mappings). Both leave room for what threads and libraries map.
    """
    page = resource.getpagesize()
    sizes = [int(field) * page for field in Path("/proc/self/statm").read_text().split()]
    allowed = min(allowance_bytes, int(0.8 * _memory_available_bytes()))
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)  # what a new thread reserves
    stacks = 2 * threads * (8 << 20 if stack == resource.RLIM_INFINITY else stack)
    data = sizes[5] + allowed + stacks + (threads + 1) * _BLAS_BYTES
    _limit(resource.RLIMIT_DATA, data)
    space = data - sizes[5] + sizes[0] + (threads + 2) * _ARENA_BYTES + (256 << 20)  # 256 MiB: libraries
    _limit(resource.RLIMIT_AS, space)
    return allowed


def _limit(kind: int, most: int) -> None:
    """A limit that the user set (`ulimit`) and that is lower stays."""
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def limit_files(nbytes: int) -> None:
    """No core dumps, and no file written beyond `nbytes`: a candidate cannot fill the disk."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_FSIZE, nbytes)
    # If the machine does run out of memory, this process goes first.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _memory_available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 1 << 62
