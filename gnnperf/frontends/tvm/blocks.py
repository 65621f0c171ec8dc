"""What TVM can look into: functions of blocks."""

from __future__ import annotations

from typing import Any


def has_root(function: Any) -> bool:
    """Whether a function is what TVM puts around blocks, which it calls so, and can schedule."""
    outermost = getattr(function.body, "block", None)
    return outermost is not None and outermost.name_hint == "root"
