"""Where gnnperf keeps what it can recompute: precompiled headers, this machine's measured peaks, locks."""

from __future__ import annotations

import os
from pathlib import Path

from gnnperf.errors import InputError


def gnnperf_cache_dir() -> Path:
    """The user's cache folder, created if need be: $GNNPERF_CACHE, else $XDG_CACHE_HOME/gnnperf.

    Raises InputError when it cannot be created or written.
    """
    named = os.environ.get("GNNPERF_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(named) if named else Path(base) / "gnnperf"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot create the cache folder {folder} ({error.strerror}); "
            "set GNNPERF_CACHE to a folder that can be written"
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"the cache folder {folder} is read-only; set GNNPERF_CACHE to a folder that can be written"
        )
    return folder
