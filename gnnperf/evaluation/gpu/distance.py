"""How unlike two GPUs are: what errors on GPUs held out are shown over."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gnnperf.devices import DeviceSpec
from gnnperf.nn.runtime.model import spans_of


def device_distance(a: DeviceSpec, b: DeviceSpec) -> float:
    """Doublings between two GPUs in the number that they differ most in, of those that both give."""
    apart = [abs(float(span[0] - span[1])) for span in spans_of([a, b]).values()]
    return max(doublings for doublings in apart if not math.isnan(doublings))


def nearest_distance(device: DeviceSpec, others: Iterable[DeviceSpec]) -> float:
    """Doublings to the most similar of at least one other GPU."""
    return min(device_distance(device, other) for other in others)
