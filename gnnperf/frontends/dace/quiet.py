"""DaCe without side effects: no folders in the user's directory, no messages, its own BLAS choice."""

from __future__ import annotations

import functools
import io
import random
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import dace
from dace import symbolic
from dace.sdfg import graph as dace_graph
from dace.sdfg import state as dace_state

from gnnperf.frontends.dace.repaired import Repairs, repaired


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
                repaired(_QUICKER),
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


_random = random.Random()


def _uuid4() -> uuid.UUID:
    """A name of a node. DaCe asks the system for each, which takes a tenth of the time to load a program."""
    return uuid.UUID(int=_random.getrandbits(128), version=4)


dace_graph.uuid = SimpleNamespace(uuid4=_uuid4)  # for good: whoever copies a node names one

_QUICKER: Repairs = {
    (dace_state, "_getdebuginfo"): lambda _: _caller,
    # `auto_optimize` asks for the same bounds once for each pair of operations.
    (symbolic, "simplify_ext"): functools.lru_cache(1)(
        lambda original: functools.lru_cache(1 << 14)(original)
    ),
}
