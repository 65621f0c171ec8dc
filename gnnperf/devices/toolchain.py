"""The C++ compiler of this machine."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from gnnperf.devices.cache import gnnperf_cache_dir
from gnnperf.documents import replacing
from gnnperf.errors import GnnperfError, InputError

_SHARED = ("-O2", "-std=c++17", "-shared", "-fPIC", "-fopenmp")
_COMPILING_S = 300.0


@functools.cache
def _find(name: str, path: str) -> tuple[str, str]:
    found = shutil.which(name, path=path)
    if found is None:
        raise InputError(
            f"C++ compiler {name!r} not found; install g++ 11 or newer "
            "(Debian, Ubuntu: apt-get install g++), or name one in GNNPERF_CXX"
        )
    try:
        shown = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(
            f"C++ compiler {found} does not run ({error}); name another in GNNPERF_CXX"
        ) from None
    return found, shown.stdout.partition("\n")[0].strip()


def find_compiler() -> tuple[str, str]:
    """(path, first line of `--version`) of $GNNPERF_CXX or g++.

    Raises InputError, saying what to install, when there is none.
    """
    return _find(os.environ.get("GNNPERF_CXX") or "g++", os.environ.get("PATH", os.defpath))


def shared_library(source: Path, name: str, options: Sequence[str] = (), link: Sequence[str] = ()) -> Path:
    """A C++ file as a shared library of that name, compiled once for each version of the file, the compiler
    and the options, in the user's cache. Raises GnnperfError where there is no compiler, or it fails."""
    compiler, version = find_compiler()
    command = [compiler, *_SHARED, *options, str(source), *link]
    key = hashlib.sha256("\n".join([version, source.read_text(), *command]).encode()).hexdigest()[:16]
    folder = gnnperf_cache_dir() / "libraries" / key
    made = folder / name
    if not made.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(made) as new:
            done = subprocess.run(
                [*command, "-o", str(new)], capture_output=True, text=True, timeout=_COMPILING_S
            )
            if done.returncode:
                raise GnnperfError(f"{name} does not compile: {done.stderr.strip()[:300]}")
    return made
