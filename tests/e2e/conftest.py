"""Whole commands in processes of their own, with nothing of the user's but the cache.

The cache is shared: precompiled headers make the tests faster, and the lock of the machine keeps the
tests out of the way of whatever else is being measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).parents[2]
KERNELS = Path(__file__).with_name("kernels_small.py")


@dataclass(frozen=True)
class Finished:
    """`notes`: lines on standard error that begin with "gnnperf: " and tell of progress."""

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

    def command(self, *args: object) -> list[str]:
        return [sys.executable, "-m", "gnnperf", *map(str, args)]

    def _run(self, command: Sequence[str]) -> Finished:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, cwd=self.folder,
            env=self.environment,
        )  # fmt: skip
        return Finished(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A folder for all the commands of one file."""
    return Shell(tmp_path_factory.mktemp("home"))
