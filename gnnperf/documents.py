"""Documents as strict JSON and as YAML: what is written, and what may come from anywhere."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

DEPTH = 32
"""Levels of lists and objects: ten times what any document of gnnperf has."""


def from_json(text: str) -> Any:
    """The value of a JSON text that anybody may have written. Raises ValueError, in a few words, for anything
    else, also for what Python reads beyond JSON, and what is nested deeper than `DEPTH`."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(f"nested deeper than {DEPTH} levels") from None
    level = [value]
    for _ in range(DEPTH + 1):
        level = [inner for outer in level for inner in _items(outer)]
        if not level:
            return value
    raise ValueError(f"nested deeper than {DEPTH} levels")


def from_yaml(text: str) -> Any:
    """The value of a YAML text that anybody may have written. Raises ValueError, in a few words, for anything
    else, for tags that make objects, aliases, and what is nested deeper than `DEPTH`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, loader):  # deep ones overflow the stack of the loader
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH:
                raise ValueError(f"nested deeper than {DEPTH} levels")
            if isinstance(event, yaml.AliasEvent):  # a few lines of them are a text of gigabytes
                raise ValueError(f"an alias, *{event.anchor}")
        return yaml.load(text, loader)
    except (yaml.YAMLError, AttributeError, LookupError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from None  # of dates that are none, it raises anything


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number in JSON")


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
