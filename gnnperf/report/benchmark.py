"""The page of a benchmark: headline figures, plots, the table, and what it was run with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnnperf.evaluation import BenchmarkResult
from gnnperf.report.page import render
from gnnperf.report.plots import inline_svg
from gnnperf.report.words import is_number


def benchmark_page(
    result: BenchmarkResult,
    shown: Sequence[Mapping[str, Any]] | None = None,
    plots: Mapping[str, Callable[[Path], None]] | None = None,
) -> str:
    """HTML of a benchmark.

    Args:
        result: what it found.
        shown: shorter rows for the table; the whole ones are behind a fold then.
        plots: by caption, functions that write a plot to a path ending in .svg.
    """
    wanted = plots if plots and result.rows else {}
    drawn = [(caption, inline_svg(draw, f"plot{i}-")) for i, (caption, draw) in enumerate(wanted.items())]
    return render(
        "benchmark.html",
        f"gnnperf: {result.benchmark}",
        result=result,
        plots=drawn,
        table=_table(result.rows if shown is None else shown),
        whole=None if shown is None else _table(result.rows),
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """names: of the columns, and whether each is one of numbers. rows: their values."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "columns": [(name, all(is_number(row.get(name)) for row in rows)) for name in names],
        "rows": [[row.get(name) for name in names] for row in rows],
    }
