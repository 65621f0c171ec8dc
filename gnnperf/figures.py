"""Pictures of matplotlib, saved alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def figure(path: Path, width: float, height: float, **more: Any) -> Iterator[Any]:
    """A figure of so many inches that is saved in the end; the suffix chooses the format. Text stays text,
    and the file is the same on every run. more: of matplotlib's `Figure`."""
    import matplotlib as mpl
    from matplotlib.figure import Figure  # not pyplot: no global state, no display

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gnnperf", "font.family": "DejaVu Sans"}):
        made = Figure(figsize=(width, height), **{"layout": "constrained", **more})
        yield made
        undated = {"Date": None} if path.suffix.lower() == ".svg" else None
        made.savefig(path, dpi=150, metadata=undated)
