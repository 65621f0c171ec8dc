"""One value of a device description, with its unit and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gnnperf.errors import InputError

_UNITS: Mapping[str, Mapping[str, float]] = {
    "gflops": {"GFLOP/s": 1, "TFLOP/s": 1000, "TOP/s": 1000},
    "gbps": {"GB/s": 1, "TB/s": 1000},
    "bytes": {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
    "mhz": {"MHz": 1, "GHz": 1000},
    "w": {"W": 1},
    "nm": {"nm": 1},
    "": {"count": 1},
}
"""Word in a field's name -> units its values may be given in, and their size in the field's own."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where one value comes from; `doubtful` says why it may be wrong."""

    source: str | None = None
    doubtful: str | None = None


def read_quantity(field: str, given: Mapping[str, Any], where: str) -> tuple[Any, Provenance]:
    """The value of `{value, unit, source, doubtful}` in the unit of `field`, and its provenance.

    Raises InputError for another key, a missing value, or a unit that does not fit the field.
    """
    unknown = [str(key) for key in given if key not in ("value", "unit", "source", "doubtful")]
    if unknown or "value" not in given:
        got = ", ".join(map(str, given)) or "nothing"
        raise InputError(f"{where}: expected {{value, unit, source, doubtful}}, got {got}")
    for text in ("source", "doubtful"):
        if text in given and (not isinstance(given[text], str) or not given[text].strip()):
            raise InputError(f"{where}: expected a text for {text}, got {given[text]!r}")
    units = units_of(field)
    unit = given.get("unit", next(iter(units)))
    if not isinstance(unit, str) or unit not in units:
        raise InputError(f"{where}: expected a unit out of {', '.join(units)}, got {unit!r}")
    value = given["value"]
    if isinstance(value, int | float) and not isinstance(value, bool) and units[unit] != 1:
        value = value * units[unit]
    return value, Provenance(given.get("source"), given.get("doubtful"))


def units_of(field: str) -> Mapping[str, float]:
    """Units that values of a field may be given in; the first is the field's own."""
    words = field.split("_")
    return next((units for word, units in _UNITS.items() if word in words), _UNITS[""])
