"""gnnperf: find tuned kernels like yours, transfer their schedules, measure, keep the winner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnnperf.integrations.dace import tuned

__version__ = "0.1.0"
__all__ = ["tuned"]


def __getattr__(name: str) -> Any:
    # DaCe and torch take seconds to import, and `gnnperf --help` needs neither.
    if name == "tuned":
        from gnnperf.integrations.dace import tuned

        return tuned
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
