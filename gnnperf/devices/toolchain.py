"""The C++ compiler of this machine."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

from gnnperf.errors import InputError


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
