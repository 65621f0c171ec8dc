"""What a benchmark reports, whatever it measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BenchmarkResult:
    """The result of a benchmark, and its JSON document.

    benchmark: its name. figures: the headline numbers. rows: the table behind them, one mapping per row.
    settings: what it was run with (corpus, device, threads, versions, seeds).
    """

    benchmark: str
    figures: Mapping[str, float]
    rows: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any]
