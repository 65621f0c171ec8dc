"""DaCe without side effects: no folders in the user's directory, no warnings, its own BLAS choice."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import dace


@contextmanager
def quiet_dace() -> Iterator[None]:
    """Run DaCe calls with library nodes kept portable ("pure") and nothing written to the current
    directory (DaCe leaves `_dacegraphs` and `.dacecache` there)."""
    blas = dace.Config.get("library", "blas", "default_implementation")
    folder = dace.Config.get("default_build_folder")
    with tempfile.TemporaryDirectory(prefix="gnnperf-dace-") as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dace.Config.set("library", "blas", "default_implementation", value="pure")
        dace.Config.set("default_build_folder", value=str(Path(scratch) / "build"))
        try:
            with chdir(scratch):
                yield
        finally:
            dace.Config.set("library", "blas", "default_implementation", value=blas)
            dace.Config.set("default_build_folder", value=folder)
