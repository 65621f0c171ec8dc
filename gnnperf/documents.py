"""Documents as strict JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any


def to_json(document: Mapping[str, Any]) -> str:
    """Strict JSON of a document of mappings, sequences, dataclasses, paths and NumPy values.

    A float that is not finite has no JSON form and becomes null.
    """
    return json.dumps(_plain(document), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | Set):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, without importing NumPy
        return _plain(value.tolist())
    raise TypeError(f"no JSON form for {type(value).__name__}")
