"""The C++ client as a benchmark calls it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gnnperf
from gnnperf.errors import BuildError, InputError, MeasureError

SOURCES = Path(gnnperf.__file__).parent.parent / "cpp"
_TIMEOUT_S = 600


@dataclass(frozen=True)
class Client:
    """program: path of gnnperf-client."""

    program: Path

    def __call__(self, *words: object) -> Any:
        """The document that it prints. Raises MeasureError where it fails."""
        command = [str(self.program), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
        if done.returncode != 0:
            raise MeasureError(f"the C++ client failed: {done.stderr.strip() or done.returncode}")
        return json.loads(done.stdout)

    def seconds(self, *words: object) -> float:
        """Wall time of one call, from the start of the process to its end."""
        started = time.perf_counter()
        self(*words)
        return time.perf_counter() - started


def check_sources() -> None:
    """Raises InputError: there are no sources of the client to build, or cmake is missing."""
    if not SOURCES.is_dir():
        raise InputError(
            f"expected the sources of the C++ client in {SOURCES}; name a built one: --client PATH"
        )
    if shutil.which("cmake") is None:
        raise InputError(
            "the C++ client is built with cmake, and there is none: install it, or give --client"
        )


def build_client(folder: Path) -> Client:
    """Build the client of this checkout with optimisation. Raises BuildError."""
    import torch

    prefix = f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}"
    for command in (
        ["cmake", "-S", str(SOURCES), "-B", str(folder), prefix],
        ["cmake", "--build", str(folder), "--parallel", "2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = [line for line in (done.stdout + done.stderr).splitlines() if "rror" in line]
            raise BuildError(f"the C++ client cannot be built: {last[0] if last else command}")
    return Client(folder / "gnnperf-client")
