"""The folder that a verb writes its results to, whatever the frontend."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import importlib.util
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from gnnperf.errors import GnnperfError, InputError

LIBRARY, SCRIPT, MODEL, REPORT = "libkernel.so", "run.py", "model.py", "report.json"


def check_output(folder: Path) -> None:
    """Refuse early, before minutes of work: InputError where the folder cannot be written."""
    if folder.is_file():
        raise InputError(f"--output: expected a folder, but '{folder}' is a file; choose another")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"--output: expected a folder that can be written, got {folder}: {error.strerror}; choose another"
        ) from None


def cannot_write(folder: Path, error: OSError) -> GnnperfError:
    """What is raised where the results cannot be written after all."""
    return GnnperfError(
        f"cannot write the results to {folder}: {error.strerror}; make room, or choose another folder, "
        "and run again"
    )


def load_script(folder: Path, script: str = SCRIPT) -> ModuleType:
    """The Python file of a folder, run as a module of its own: it loads the library beside it."""
    name = "gnnperf_tuned_" + re.sub(r"\W", "_", folder.name)
    spec = importlib.util.spec_from_file_location(name, folder / script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with same_float_mode():
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def same_float_mode() -> Iterator[None]:
    """Restore the floating-point environment afterwards: loading a library that was linked with -ffast-math
    flushes subnormals to zero in all of the process."""
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    before = ctypes.create_string_buffer(256)  # larger than any fenv_t
    libm.fegetenv(before)
    try:
        yield
    finally:
        libm.fesetenv(before)


def folder_of(owner: object, prefix: str) -> Path:
    """A new temporary folder that goes when its owner does."""
    folder = tempfile.mkdtemp(prefix=prefix)
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
