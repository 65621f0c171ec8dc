"""The schedule stores that a retrieval searches: the released one, and the user's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gnnperf.errors import GnnperfError
from gnnperf.graph import ProgramGraph
from gnnperf.store import Store

if TYPE_CHECKING:
    from gnnperf.nn import Bundle

USER_FAMILY = "user"
"""Family of nests that came from a user's kernel rather than a corpus."""


def user_store() -> str:
    """Where a user's own records live: $GNNPERF_STORE (a folder or URI), else the user's data folder."""
    data_home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return os.environ.get("GNNPERF_STORE") or str(Path(data_home).expanduser() / "gnnperf" / "store")


def open_own(location: str | None, bundle: Bundle, notify: Callable[[str], None]) -> Store:
    """The user's store, made if there is none, with all its nests known to this encoder.

    location: None for `user_store()`. notify: told of what could not be embedded. Raises StoreError.
    """
    own = Store.open(location or user_store(), create=True)
    try:
        own.reembed(bundle.encoder_id, lambda texts: bundle.embed([ProgramGraph.from_json(t) for t in texts]))
    except GnnperfError as error:
        notify(f"not all of {own.location} is searched: {error}")
    return own
