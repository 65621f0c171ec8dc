"""The report of a benchmark: its table and headline numbers, for people and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gnnperf.cli.output import Report

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult


def benchmark_report(result: BenchmarkResult) -> Report:
    """A table with a line per row, the figures below it."""
    from rich.console import Group
    from rich.table import Table

    table = Table(box=None, padding=(0, 1))
    for name in result.rows[0] if result.rows else ():
        numeric = all(isinstance(row[name], int | float | None) for row in result.rows)
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left")
    for row in result.rows:
        table.add_row(*map(_cell, row.values()))
    lines = "\n".join(f"{name}: {_cell(value)}" for name, value in result.figures.items())
    return Report(asdict(result), Group(table, "", lines))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
