"""The C++ client, built once, with sanitizers: any error they find ends the program with a message."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.compiled import compiled_folder
from helpers.made_up_model import made_up, made_up_folder
from helpers.sharing import shared_folder

import gnnperf
from gnnperf.export import export_checkpoint

__all__ = ["compiled_folder", "made_up", "made_up_folder"]

ROOT = Path(gnnperf.__file__).parent.parent
# What libtorch keeps until the end of the process is no leak of ours.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1"}

Client = Callable[..., Any]


@pytest.fixture(scope="session")
def build() -> Path:
    """Folder of the built client; build/ is kept, so that only what changed is compiled again."""
    folder = ROOT / "build" / "cpp-tests"
    configure = [
        "cmake", "-S", str(ROOT / "cpp"), "-B", str(folder), "-DGNNPERF_SANITIZE=ON", "-DGNNPERF_TESTS=ON",
        "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}",
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests of another file may want it built at the same time
        for command in (configure, ["cmake", "--build", str(folder), "--parallel", "2"]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            assert done.returncode == 0, f"{' '.join(command)}:\n{tail}"
    return folder


@pytest.fixture(scope="session")
def exported(made_up_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with model.pt and store.gnnstore of a made-up model, and runtime/model.pt."""

    def export(folder: Path) -> None:
        export_checkpoint(made_up_folder, folder, "torchscript")
        export_checkpoint(ROOT / "checkpoints" / "gpu-runtime", folder / "runtime", "torchscript")

    return shared_folder(tmp_path_factory, "exported", export)


def run(build: Path, program: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a program of the build; never for ever."""
    return subprocess.run(
        [str(build / program), *map(str, words)],
        capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **SANITIZERS},
    )  # fmt: skip


@pytest.fixture(scope="session")
def client(build: Path) -> Client:
    """`client("embed", model, graph)`: the document that the tool prints."""

    def call(*words: object) -> Any:
        done = run(build, "gnnperf-client", *words)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return json.loads(done.stdout)

    return call


@pytest.fixture(scope="session")
def refusal(build: Path) -> Callable[..., str]:
    """`refusal("embed", model)`: the one line that the tool prints when it refuses its input."""

    def call(*words: object) -> str:
        done = run(build, "gnnperf-client", *words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
        return done.stderr

    return call


@pytest.fixture(scope="session")
def drive(build: Path, exported: Path) -> Callable[..., str]:
    """`drive(file, ...)`: what the library says of damaged files, one line each. It survives them all."""

    def call(*files: Path) -> str:
        done = run(build, "mutants", exported / "model.pt", *files)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return call
