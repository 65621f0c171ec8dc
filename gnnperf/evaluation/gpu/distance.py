"""How unlike two GPUs are: what errors on GPUs held out are shown over."""

from __future__ import annotations

from collections.abc import Iterable

from gnnperf.devices import DeviceSpec
from gnnperf.nn.runtime.columns import device_columns
from gnnperf.nn.runtime.model import device_span


def device_distance(a: DeviceSpec, b: DeviceSpec) -> float:
    """Doublings between two GPUs in the number that they differ most in, of those that both give."""
    spans = [device_span(device_columns(device)) for device in (a, b)]
    return max(abs(spans[0][name] - spans[1][name]) for name in spans[0].keys() & spans[1].keys())


def nearest_distance(device: DeviceSpec, others: Iterable[DeviceSpec]) -> float:
    """Doublings to the most similar of at least one other GPU."""
    return min(device_distance(device, other) for other in others)
