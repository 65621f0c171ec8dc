"""Numbers as the pages show them: three digits, in the unit that suits them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

MISSING = "–"
"""Stands where there is no value."""


def number(value: float, digits: int = 3) -> str:
    """Thousands apart, and no exponent where there need not be one: "1,230", "0.0456", "3e-09"."""
    if not math.isfinite(value):
        return MISSING
    if value and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.{digits}g}"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{float(f'{value:.{digits}g}'):.{_decimals(value, digits)}f}"


def _decimals(value: float, digits: int) -> int:
    """Digits behind the point that leave `digits` in all, zeros in front not counted."""
    rounded = abs(float(f"{value:.{digits}g}"))
    return digits - 1 - math.floor(math.log10(rounded)) if rounded else 0


def label(value: float) -> str:
    """A round value at an axis: "0.5", "1", "2,000"."""
    return f"{value:,.0f}" if value >= 1 and float(value).is_integer() else f"{value:g}"


def duration(seconds: float, digits: int = 4) -> str:
    """ "1.205 ms"."""
    size, unit = _time_unit(seconds)
    return f"{number(seconds / size, digits)} {unit}"


def duration_label(seconds: float) -> str:
    """A round time at an axis: "2 ms"."""
    size, unit = _time_unit(seconds)
    return f"{label(float(f'{seconds / size:.3g}'))} {unit}"


def duration_interval(interval_s: Sequence[float], like_s: float) -> str:
    """ "[1.040, 2.027]", in the unit of `duration(like_s)`."""
    size, _ = _time_unit(like_s)
    return f"[{', '.join(number(end / size, 4) for end in interval_s)}]"


def _time_unit(seconds: float) -> tuple[float, str]:
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    # Just below a unit it is rounded up to it: 1e-3 s may be 0.00099999.
    return next((u for u in units if seconds >= u[0] * 0.9999), (1e-9, "ns"))


def times(value: float) -> str:
    """A speedup: "21.2×", "1.05×"."""
    return f"{number(value)}×"


def times_label(value: float) -> str:
    """A round speedup at an axis: "2×"."""
    return f"{label(value)}×"


def times_interval(interval: Sequence[float]) -> str:
    return f"[{', '.join(number(end) for end in interval)}]"


def percent(share: float) -> str:
    """ "93%", "2.4%", "< 0.1%"."""
    if 0 < share < 0.0005:
        return "< 0.1%"
    return f"{share:.0%}" if share >= 0.095 or share == 0 else f"{share:.1%}"


def rate(per_second: float, unit: str) -> str:
    """Of FLOP or bytes: "88.1 GFLOP/s"."""
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_second >= size:
            return f"{number(per_second / size)} {prefix}{unit}/s"
    return f"{number(per_second)} {unit}/s"


def cell(value: Any) -> str:
    """Whatever a table of a benchmark holds."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {cell(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) == 2 and all(isinstance(v, float) for v in value):
            return times_interval(value)
        return "; ".join(map(cell, value))
    return str(value)


def is_number(value: Any) -> bool:
    """Whether a column of such values is aligned by their last digits."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
