"""What Kernel Tuner wrote: its cache files, and T4 results, as rows of measured configurations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gnnperf.devices import find_device
from gnnperf.documents import from_json, text_of
from gnnperf.errors import InputError

MS = {"": 1.0, "ms": 1.0, "milliseconds": 1.0, "s": 1e3, "seconds": 1e3, "us": 1e-3, "microseconds": 1e-3,
      "ns": 1e-6, "nanoseconds": 1e-6}  # fmt: skip
"""Milliseconds of a unit; without one, Kernel Tuner means milliseconds."""


def read_kernel_tuner(path: Path, kernel: str) -> dict[str, list[Any]]:
    """Columns as of a Parquet file of measurements, `params` as mappings, of one kernel on one GPU.

    A cache says which GPU it is of; T4 results do not: they are of the GPU that the file is named after
    ("A4000.json"). A cache that was never closed, because its tuning was interrupted, is read as well. What
    either says of the kernel's name and the problem's size is not looked at. Raises InputError.
    """
    try:
        document = _parsed(text_of(path))
        if "cache" in document:
            gpu = str(document["device_name"])
            rows = [_of_cache(entry, document["tune_params_keys"]) for entry in document["cache"].values()]
        else:
            gpu = path.stem
            rows = [_of_t4(result) for result in document["results"]]
    except (OSError, AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: expected a cache of Kernel Tuner, or its results in the T4 format: "
            f"{type(error).__name__}: {error}"
        ) from None
    if find_device(gpu, {}) is None:
        advice = (
            "" if "cache" in document else "; results in the T4 format are named after theirs: A4000.json"
        )
        raise InputError(f"{path}: expected a GPU of the catalog, got {gpu!r}{advice}")
    return {
        "kernel": [kernel] * len(rows), "space": [path.stem] * len(rows), "device": [gpu] * len(rows),
        "params": [params for params, _ in rows], "time_ms": [ms for _, ms in rows],
        "valid": [ms > 0 for _, ms in rows],
    }  # fmt: skip


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = from_json(text)
    except json.JSONDecodeError:
        found = from_json(text.rstrip().rstrip(",") + "}}")
    if not isinstance(found, dict):
        raise TypeError("no JSON object")
    return found


def _of_cache(entry: Mapping[str, Any], keys: list[str]) -> tuple[dict[str, Any], float]:
    """Parameters and milliseconds, 0 where it failed: instead of a time there is the name of an error."""
    time = entry["time"]
    return {key: entry[key] for key in keys}, float(time) if isinstance(time, int | float) else 0.0


def _of_t4(result: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    if result["invalidity"] != "correct":
        return dict(result["configuration"]), 0.0
    (time,) = (one for one in result["measurements"] if one["name"] == "time")
    return dict(result["configuration"]), float(time["value"]) * MS[time.get("unit", "")]
