"""The report of a benchmark: its table and headline numbers, for people, as JSON and as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnperf.cli.output import Report
from gnnperf.documents import to_json

if TYPE_CHECKING:
    from rich.table import Table

    from gnnperf.evaluation import BenchmarkResult


def benchmark_report(
    result: BenchmarkResult,
    shown: Sequence[Mapping[str, Any]] | None = None,
    plots: Mapping[str, Callable[[Path], None]] | None = None,
    output: Path | None = None,
    suffixes: Sequence[str] = (),
) -> Report:
    """A table with a line per row, the figures below it.

    Args:
        shown: shorter rows for people.
        plots: by caption, for the page; see `gnnperf.report.benchmark_page`.
        output: a folder for the document of --json, `BENCHMARK.json`, and the plots, as PNG and SVG.
        suffixes: of the names of the plots' files; by default they are numbered.
    """
    from rich.console import Group

    table = rows_table(result.rows if shown is None else shown)
    lines = "\n".join(f"{name}: {_cell(value)}" for name, value in result.figures.items())

    def page() -> str:
        from gnnperf.report import benchmark_page

        return benchmark_page(result, shown, plots)

    if output is not None:
        _write(result, output, list((plots or {}).values()), suffixes)
    return Report(asdict(result), Group(table, "", lines), page=page)


def rows_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A line per row, a column per key."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1))
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        numeric = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in names))
    return table


def _write(
    result: BenchmarkResult, output: Path, draws: Sequence[Callable[[Path], None]], suffixes: Sequence[str]
) -> None:
    (output / f"{result.benchmark}.json").write_text(to_json(vars(result)) + "\n", encoding="utf-8")
    suffixes = suffixes or [f"-{number}" if number > 1 else "" for number in range(1, len(draws) + 1)]
    for draw, suffix in zip(draws, suffixes, strict=True):
        for kind in (".png", ".svg"):
            draw(output / f"{result.benchmark}{suffix}{kind}")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
