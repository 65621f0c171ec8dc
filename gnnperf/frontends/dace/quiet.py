"""DaCe without side effects: no folders in the user's directory, no messages, its own BLAS choice."""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import dace


@contextmanager
def quiet_dace() -> Iterator[None]:
    """Run DaCe with library nodes kept portable ("pure"), without messages and progress bars (its
    exceptions say the same), and with a scratch folder as current directory, because DaCe leaves
    `_dacegraphs` and `.dacecache` there. DaCe's settings are restored."""
    with tempfile.TemporaryDirectory(prefix="gnnperf-dace-") as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {
            ("library", "blas", "default_implementation"): "pure",
            ("default_build_folder",): str(Path(scratch) / "build"),
            ("progress",): False,
        }
        before = {path: dace.Config.get(*path) for path in settings}
        for path, value in settings.items():
            dace.Config.set(*path, value=value)
        try:
            with chdir(scratch), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                yield
        finally:
            for path, value in before.items():
                dace.Config.set(*path, value=value)
