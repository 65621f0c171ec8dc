"""DaCe without side effects: no folders in the user's directory, no messages, its own BLAS choice."""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import dace
from dace.sdfg import state as dace_state

from gnnperf.frontends.dace.repaired import repaired


@contextmanager
def quiet_dace() -> Iterator[None]:
    """Run DaCe with library nodes kept portable ("pure"), without messages and progress bars (its
    exceptions say the same), without a history of transformations, which every copy of a program would copy,
    and with a scratch folder as current directory, because DaCe leaves `_dacegraphs` and `.dacecache` there.
    DaCe's settings are restored."""
    with tempfile.TemporaryDirectory(prefix="gnnperf-dace-") as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = {
            ("library", "blas", "default_implementation"): "pure",
            ("default_build_folder",): str(Path(scratch) / "build"),
            ("progress",): False,
            ("store_history",): False,
        }
        before = {path: dace.Config.get(*path) for path in settings}
        for path, value in settings.items():
            dace.Config.set(*path, value=value)
        try:
            with (
                chdir(scratch),
                redirect_stdout(io.StringIO()),
                redirect_stderr(io.StringIO()),
                repaired({(dace_state, "_getdebuginfo"): lambda _: _caller}),
            ):
                yield
        finally:
            for path, value in before.items():
                dace.Config.set(*path, value=value)


def _caller(known: dace.dtypes.DebugInfo | None = None) -> dace.dtypes.DebugInfo:
    """Whose line made a node. DaCe's own looks, for every node, for the source of every frame below: half of
    the time that loading a program takes, where one of them is of no file (`python -m`, a notebook)."""
    if known is not None:
        return known
    frame = sys._getframe(2)
    return dace.dtypes.DebugInfo(frame.f_lineno, filename=frame.f_code.co_filename)
