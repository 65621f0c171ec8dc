"""Corpus configurations: which kernels at which sizes, and how long to search each nest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gnnperf.corpus.random_nests import generate
from gnnperf.errors import InputError


@dataclass(frozen=True)
class Entry:
    """One kernel at one size. `kernel` and `inputs` are file:name, relative to the configuration; where
    `random` is the number of a random nest, `kernel` is its name."""

    kernel: str
    family: str
    symbols: Mapping[str, float]
    inputs: str | None = None
    random: int | None = None

    @property
    def name(self) -> str:
        """The function's name."""
        return self.kernel.rpartition(":")[2]

    @property
    def key(self) -> str:
        """Names the entry in the log of a collection."""
        return json.dumps([self.kernel, dict(self.symbols), self.inputs])

    def __str__(self) -> str:
        return " ".join([self.kernel, *(f"{k}={v}" for k, v in self.symbols.items())])


@dataclass(frozen=True)
class CollectConfig:
    """A corpus configuration.

    recipes_per_nest: measured by search at most. patience: mutations without progress that end a search
    earlier (0: never). budget_s_per_nest: wall time of one search. foreign_per_nest: recipes that were good
    on other nests, measured after that. random_nests: entries, after those listed, that are random nests
    with the numbers 0, 1, ...: more of them leave those before as they are.
    """

    name: str
    folder: Path
    entries: tuple[Entry, ...]
    recipes_per_nest: int = 40
    patience: int = 12
    budget_s_per_nest: float = 20.0
    foreign_per_nest: int = 24
    random_nests: int = 0
    seed: int = 0

    @staticmethod
    def load(path: Path) -> CollectConfig:
        """Read a YAML file. InputError names the first thing that is wrong."""
        try:
            raw = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise InputError(
                f"cannot read the configuration {path}: {' '.join(str(error).split())}"
            ) from None
        if not isinstance(raw, dict) or not isinstance(raw.get("entries"), list) or not raw.get("name"):
            raise InputError(
                f"{path}: expected a mapping with `name` and a list `entries`, got {_shortly(raw)}"
            )
        known = {"name", "entries", *_SETTINGS}
        if unknown := sorted(str(key) for key in set(raw) - known):
            raise InputError(f"{path}: unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
        settings = {k: _number(path, k, raw[k], *bounds) for k, bounds in _SETTINGS.items() if k in raw}
        entries = [_entry(path, number, item) for number, item in enumerate(raw["entries"], start=1)]
        nests = map(generate, range(settings.get("random_nests", 0)))
        entries += [Entry(n.name, n.family, n.symbols, random=n.number) for n in nests]
        return CollectConfig(str(raw["name"]), path.parent, tuple(entries), **settings)

    def path(self, spec: str) -> str:
        """A `file:name` of an entry, seen from the current folder."""
        return str(self.folder / spec)


_SETTINGS: Mapping[str, tuple[type, float]] = {
    "recipes_per_nest": (int, 1),
    "patience": (int, 0),
    "budget_s_per_nest": (float, 0),
    "foreign_per_nest": (int, 0),
    "random_nests": (int, 0),
    "seed": (int, 0),
}
"""Type and least value of each optional setting."""


def _number(path: Path, name: str, value: Any, kind: type, least: float) -> Any:
    accepted = int | float if kind is float else int
    if not isinstance(value, accepted) or isinstance(value, bool) or not value >= least:
        what = "a number" if kind is float else "an integer"
        raise InputError(f"{path}: {name}: expected {what} of at least {least:g}, got {_shortly(value)}")
    return kind(value)


def _entry(path: Path, number: int, item: Any) -> Entry:
    where = f"{path}: entry {number}"
    if not isinstance(item, dict) or not _REQUIRED <= set(item) <= _REQUIRED | {"symbols", "inputs"}:
        raise InputError(
            f"{where}: expected kernel, family and optionally symbols and inputs, got {_shortly(item)}"
        )
    symbols = item.get("symbols") or {}
    numbers = isinstance(symbols, dict) and all(
        isinstance(k, str) and isinstance(v, int | float) for k, v in symbols.items()
    )
    if not numbers:
        raise InputError(
            f"{where}: expected symbols as a mapping of names to numbers, got {_shortly(symbols)}"
        )
    kernel, inputs = item["kernel"], item.get("inputs")
    for key, spec in (("kernel", kernel), ("inputs", inputs)):
        if spec is None and key == "inputs":
            continue
        if not isinstance(spec, str) or not (path.parent / spec.rpartition(":")[0]).is_file():
            raise InputError(
                f"{where}: expected {key} to be file.py:name of a file that exists, got {_shortly(spec)}"
            )
    return Entry(kernel, str(item["family"]), dict(symbols), inputs)


_REQUIRED = {"kernel", "family"}


def _shortly(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
