"""Ctrl-C and worse, at every stage of a run: nothing is left running, nothing is left lying about."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.conftest import KERNELS, Shell

PATIENCE_S = 120.0

SCORES = ("retrieve", f"{KERNELS}:scores", "--set", "N=64", "--set", "M=48", "--set", "K=80")
ENDLESS = ("retrieve", f"{KERNELS}:power", "--set", "N=400", "--set", "STEPS=100000000")
"""Its first run, untuned, would take hours."""


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def progress(process: subprocess.Popen[str], line: str) -> None:
    """Read standard error up to a line of progress."""
    assert process.stderr is not None
    for text in process.stderr:
        if line in text:
            return
    pytest.fail(f"ended before it said {line!r}")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    assert shell.processes() == []


@pytest.fixture
def started(home: Shell) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []

    def start(*args: object) -> subprocess.Popen[str]:
        running.append(home.start(*args))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    wait_until(lambda: not home.processes())


def compiler_runs(home: Shell) -> bool:
    return any("cc1plus" in line and "gnnperf-build" in line for line in home.processes())


def candidate_runs(home: Shell) -> bool:
    """The measuring server has a child."""
    return sum("gnnperf.measure.server" in line for line in home.processes()) >= 2


@pytest.mark.parametrize(
    ("arguments", "said", "happens", "presses"),
    [
        (ENDLESS, "reading the kernel's inputs", candidate_runs, 1),
        (SCORES, "1 of 1: ", compiler_runs, 3),
    ],
    ids=["while it runs the kernel", "again and again while it compiles"],
)
def test_ctrl_c(
    arguments: tuple[str, ...],
    said: str,
    happens: Callable[[Shell], bool],
    presses: int,
    home: Shell,
    started: Callable[..., subprocess.Popen[str]],
) -> None:
    """As a terminal does it: every process of the group gets the signal."""
    process = started(*arguments, "--no-store", "--output", "out")
    progress(process, said)
    wait_until(lambda: happens(home))
    for _ in range(presses):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.01)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (130, "")
    assert stderr.splitlines()[-1] == "gnnperf: interrupted; nothing was reported"
    assert "Traceback" not in stderr
    assert list(home.temporary.iterdir()) == []
    assert list((home.folder / "out").iterdir()) == []
    wait_until(lambda: not home.processes())


def test_kill_9_leaves_no_orphans(home: Shell, started: Callable[..., subprocess.Popen[str]]) -> None:
    process = started(*ENDLESS, "--no-store")
    progress(process, "reading the kernel's inputs")
    wait_until(lambda: candidate_runs(home))
    process.kill()
    process.communicate()
    wait_until(lambda: not home.processes())
