"""Candidates that would write files, talk, start programs or outlive their time: the kernel refuses."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnnperf.devices import MachineLock
from gnnperf.measure import isolation
from gnnperf.measure.counters import SOFTWARE_EVENTS, Counters
from gnnperf.measure.isolation import confine, confined, isolate, not_isolated
from gnnperf.measure.supervisor import result_of

pytestmark = pytest.mark.skipif(bool(not_isolated()), reason=not_isolated())


def isolated(attempt: Callable[[], Any]) -> Any:
    """What the attempt returns in an isolated fork, or the number of the error that it meets."""

    def work(_: object) -> Any:
        isolate()
        try:
            return attempt()
        except OSError as error:
            return f"errno {error.errno}"

    return result_of(work, 20.0)


REFUSED = f"errno {errno.EPERM}"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (tmp_path / "victim").write_text("as it was")
    return tmp_path / "victim"


FILES: dict[str, Callable[[Path], Any]] = {
    "write": lambda victim: victim.write_text("other"),
    "append": lambda victim: os.open(victim, os.O_WRONLY | os.O_APPEND),
    "read and cut": lambda victim: os.open(victim, os.O_RDONLY | os.O_TRUNC),
    "cut": lambda victim: os.truncate(victim, 0),
    "make": lambda victim: (victim.parent / "new").touch(),
    "make a folder": lambda victim: (victim.parent / "new").mkdir(),
    "remove": lambda victim: victim.unlink(),
    "rename": lambda victim: victim.rename(victim.with_name("new")),
    "link": lambda victim: victim.with_name("new").symlink_to(victim),
    "permissions": lambda victim: victim.chmod(0o777),
    "owner": lambda victim: os.chown(victim, 1, 1),
    "time": lambda victim: os.utime(victim, (0, 0)),
    "attributes": lambda victim: os.setxattr(victim, "user.mark", b"1"),
    "a device": lambda victim: os.mknod(victim.with_name("new")),
    "another root": lambda victim: os.chroot(victim.parent),
}


@pytest.mark.parametrize("way", FILES)
def test_files_stay_as_they_are(way: str, victim: Path) -> None:
    before = victim.stat()

    assert isolated(lambda: FILES[way](victim)) == REFUSED

    after = victim.stat()
    assert [path.name for path in victim.parent.iterdir()] == ["victim"]
    assert victim.read_text() == "as it was"
    assert (after.st_mode, after.st_uid, after.st_mtime_ns) == (
        before.st_mode, before.st_uid, before.st_mtime_ns
    )  # fmt: skip


LIMIT = (ctypes.c_ulong * 2)(64, 64)

OTHERS: dict[str, Callable[[], Any]] = {
    "a connection": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
    "a datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    "a local socket": lambda: socket.socket(socket.AF_UNIX),
    "a program": lambda: os.execv("/bin/true", ["true"]),
    "a process": os.fork,
    "a session": os.setsid,
    "a group": lambda: os.setpgid(0, 0),
    "ending the parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "ending all": lambda: os.kill(-1, signal.SIGKILL),
    "a signal by a file": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid()),
    "priority": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
    "niceness": lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
    "its limits": lambda: _libc_call("setrlimit", resource.RLIMIT_NOFILE, LIMIT),
    "living on": lambda: _libc_call("prctl", 1, 0, 0, 0, 0),
    "looking into another": lambda: _libc_call("ptrace", 16, os.getppid(), 0, 0),
    "shared memory": lambda: _libc_call("shmget", 0, 4096, 0o1600),
    "another name space": lambda: _libc_call("unshare", 0x10000000),
    "io_uring": lambda: _libc_call("syscall", 425, 1, 0),
}


def _libc_call(name: str, *arguments: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    found = int(getattr(libc, name)(*arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


@pytest.mark.parametrize("way", OTHERS)
def test_nothing_but_itself_is_reached(way: str) -> None:
    assert isolated(OTHERS[way]) == REFUSED


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86-64")
def test_the_interfaces_for_32_bits_are_closed(victim: Path) -> None:
    """The same call by another door, where the numbers are others."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
    code.write(bytes.fromhex("53b814000000cd805bc3"))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    by_interrupt = ctypes.CFUNCTYPE(ctypes.c_int)(address)

    assert isolated(lambda: _libc_call("syscall", 0x40000000 + 39)) == REFUSED
    assert isolated(by_interrupt) == -errno.EPERM


def test_what_computing_needs_is_left(victim: Path) -> None:
    def attempt() -> Any:
        found: list[int] = []
        threads = [threading.Thread(target=found.append, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert np.ones(1 << 22).sum() == 1 << 22  # memory that is mapped
        assert Counters.open(SOFTWARE_EVENTS) is not None
        assert len([*victim.parent.iterdir()]) == 1
        time.sleep(0.001)
        return [victim.read_text(), sorted(found), len(os.urandom(3))]

    assert isolated(attempt) == ["as it was", [0, 1, 2], 3]


def test_threads_that_were_there_are_held_too(victim: Path) -> None:
    def attempt(_: object) -> str:
        go, said = threading.Event(), []

        def late() -> None:
            go.wait()
            try:
                victim.write_text("other")
            except OSError as error:
                said.append(f"errno {error.errno}")

        thread = threading.Thread(target=late)
        thread.start()
        isolate()
        go.set()
        thread.join()
        return said[0]

    assert result_of(attempt, 20.0) == REFUSED
    assert victim.read_text() == "as it was"


TOOLS: dict[str, str] = {
    "write": "echo other > {0}/victim",
    "append": "echo other >> {0}/victim",
    "make": "echo new > {0}/new",
    "make a folder": "mkdir {0}/new",
    "remove": "rm {0}/victim",
    "rename": "mv {0}/victim {0}/new",
    "move away": "mv {0}/victim own",
    "move there": "touch own && mv own {0}/new",
    "link": "ln {0}/victim own",
    "device": "mknod own b 1 1",
    "a connection": "{1} -c 'import socket; socket.socket()'",
    "a local socket": "{1} -c 'import socket; socket.socket(socket.AF_UNIX)'",
    "signals": "kill -0 $PPID",
}


@pytest.mark.parametrize("way", TOOLS)
def test_a_confined_tool_changes_nothing_outside(way: str, victim: Path, tmp_path: Path) -> None:
    if way == "signals" and isolation._landlock_version() < 6:
        pytest.skip("this kernel's Landlock knows nothing of signals")
    own = tmp_path / "folder"
    own.mkdir()
    script = TOOLS[way].format(tmp_path, sys.executable)

    done = confined(
        lambda: subprocess.run(["/bin/sh", "-c", script], cwd=own, capture_output=True, text=True), str(own)
    )

    assert done.returncode != 0
    assert "not permitted" in done.stderr or "denied" in done.stderr or "cross-device" in done.stderr.lower()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "victim"]
    assert victim.read_text() == "as it was"


def test_a_confined_tool_works_in_its_folder_and_others_are_free(victim: Path, tmp_path: Path) -> None:
    own = tmp_path / "folder"
    own.mkdir()
    script = f"mkdir a && cat {victim} > a/b && mv a/b c && rm -r a && (echo quiet > /dev/null) && cat c"

    done = confined(lambda: subprocess.run(["/bin/sh", "-c", script], cwd=own, capture_output=True), str(own))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"as it was", b"")
    victim.write_text("other")  # by a thread that is not confined
    with socket.socket():
        pass


def test_errors_of_what_is_confined_are_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        confined(lambda: 1 // 0, str(tmp_path))
    with pytest.raises(FileNotFoundError):
        confined(lambda: None, str(tmp_path / "missing"))


def test_a_fork_that_is_confined_takes_the_lock(tmp_path: Path, victim: Path) -> None:
    """As the process that compiles TVM's schedules does."""

    def work(_: object) -> Any:
        lock = MachineLock(str(tmp_path / "lock"))
        confine(lock.file())
        with lock:
            try:
                victim.write_text("other")
            except OSError as error:
                return error.errno

    assert result_of(work, 20.0) == errno.EACCES


@pytest.mark.parametrize("version", range(1, 8))
def test_older_kernels_are_asked_for_what_they_know(
    version: int, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "_landlock_version", lambda: version)

    with pytest.raises(PermissionError):
        confined(lambda: victim.unlink(), str(tmp_path / "victim"))


def test_where_it_does_not_work_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")

    assert not_isolated() == (
        "candidates are not kept from files and the network: that works on Linux for x86-64, and this is"
        " Linux for riscv64"
    )
    isolate()  # does nothing, to this process too
    with socket.socket(socket.AF_UNIX):
        pass


def test_a_kernel_without_landlock_is_said(monkeypatch: pytest.MonkeyPatch, victim: Path) -> None:
    monkeypatch.setattr(isolation, "_landlock_version", lambda: -1)

    assert not_isolated() == "compilers are not kept from files: this kernel has no Landlock, or it is off"
    confined(lambda: victim.write_text("other"))
    assert victim.read_text() == "other"
