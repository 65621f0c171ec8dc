"""Whole commands, most in processes of their own, with nothing of the user's but the cache.

The cache is shared: precompiled headers make the tests faster, and the lock of the machine keeps the
tests out of the way of whatever else is being measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from gnnperf.cli.main import run

REPO = Path(__file__).parents[2]
KERNELS = Path(__file__).with_name("kernels_small.py")
MARK = "GNNPERF_TEST_HOME"
"""In the environment of all processes of a shell, so that orphans are found."""


@dataclass(frozen=True)
class Finished:
    """A command that ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        assert self.exit_code == 0, self.stderr
        assert self.stdout.count("\n") == 1
        return json.loads(self.stdout)


@dataclass(frozen=True)
class Shell:
    """Runs commands in a folder, which is also the home of everything they keep."""

    folder: Path
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("GNNPERF_STORE", "COLUMNS"))}
        mine = {
            "PYTHONPATH": str(REPO),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "TMPDIR": str(self.temporary),
            MARK: str(self.folder),
        }
        return keep | mine | self.extra

    @property
    def temporary(self) -> Path:
        path = self.folder / "tmp"
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def user_store(self) -> Path:
        return self.folder / "data" / "gnnperf" / "store"

    def python(self, *args: object) -> Finished:
        """Anything but gnnperf that is done with its results."""
        return self._run([sys.executable, *map(str, args)])

    def gnnperf(self, *args: object) -> Finished:
        return self._run(self.command(*args))

    def here(self, capfd: pytest.CaptureFixture[str], *args: object) -> Finished:
        """`gnnperf` in this process, which has its imports, where a process of its own is not the point."""
        capfd.readouterr()
        environment = {k: v for k, v in self.environment.items() if k != MARK}  # what it starts is this one's
        with contextlib.chdir(self.folder), mock.patch.dict(os.environ, environment, clear=True):
            exit_code = run([*map(str, args)])
        return Finished(exit_code, *capfd.readouterr())

    def benchmark(self, *args: object) -> Finished:
        """`python scripts/benchmarks/run.py`."""
        return self.python(REPO / "scripts" / "benchmarks" / "run.py", *args)

    def command(self, *args: object) -> list[str]:
        return [sys.executable, "-m", "gnnperf", *map(str, args)]

    def start(self, *args: object) -> subprocess.Popen[str]:
        """`gnnperf` in the foreground of a terminal of its own, as far as signals are concerned."""
        return subprocess.Popen(
            self.command(*args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=self.folder, env=self.environment, start_new_session=True,
        )  # fmt: skip

    def processes(self) -> list[str]:
        """Command lines of everything that was started from here and still runs, in whatever session."""
        mark = f"{MARK}={self.folder}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def _run(self, command: Sequence[str]) -> Finished:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=self.folder,
            env=self.environment,
        )  # fmt: skip
        return Finished(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def tensor_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint for TVM kernels, made up."""
    from helpers.tensor_world import write_checkpoint

    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A folder for all the commands of one file."""
    return Shell(tmp_path_factory.mktemp("home"))
