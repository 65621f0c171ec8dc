"""Benchmarks that measure row after row: what was measured is kept, also when one is interrupted."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.options import results_folder
from gnnperf.cli.output import Report, progress
from gnnperf.documents import to_json
from gnnperf.errors import GnnperfError, Interrupted
from gnnperf.evaluation import BenchmarkResult
from gnnperf.evaluation.row_log import RowLog

Say = Callable[[str], None]
Row = Mapping[str, Any]
Rows = Sequence[Row]


output_option = results_folder(
    "Write rows as they are measured, the document of --json, and plots. Rows that are there already "
    "are not measured again: the same command goes on from there.",
)


class Study(ABC):
    """A benchmark whose rows are measured one by one.

    Attributes:
        name: of the benchmark.
        key: the field of a row that names it.
    """

    name: str
    key: ClassVar[str] = "kernel"

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """What rows are measured with: those measured with others belong in another folder."""

    @abstractmethod
    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        """What measures a row, by name, in the order of measuring. A row may list what went wrong under
        "failures", one line each: the command then fails, and measures the row again the next time. So does
        a row whose measuring raises GnnperfError."""

    @staticmethod
    @abstractmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """The headline numbers."""

    def about(self, name: str) -> dict[str, Any]:
        """The fields of a row that are known before it is measured, or where that fails."""
        return {self.key: name}

    def table(self, measured: Mapping[str, Row]) -> Rows:
        """The rows of the document, from what was measured."""
        return [*measured.values()]

    @staticmethod
    def shown(row: Row) -> Row:
        """A row short enough for a terminal."""
        return row

    @staticmethod
    def notes(table: Rows) -> Iterable[str]:
        """Lines below the table, for people."""
        return ()

    def plots(self, result: BenchmarkResult) -> Mapping[str, Callable[[Path], None]]:
        """By caption, functions that write a plot; the suffix of the path chooses the format."""
        return {}

    def run(self, output: Path | None) -> Report:
        """Measure what a folder does not have, and report. Ctrl-C ends it early with the rows there are;
        with none, it raises KeyboardInterrupt. Raises InputError: the folder has rows of other settings."""
        settings = self.settings()
        work = self.work()
        measured = measure(self, work, RowLog(output, json.loads(to_json(settings))))
        table = self.table(measured)
        result = BenchmarkResult(self.name, self.figures(table), table, settings)
        return replace(_report(self, result, output), failure=_failure(measured, len(work), output))


def measure(study: Study, work: Mapping[str, Callable[[Say], Row]], log: RowLog) -> dict[str, Row]:
    """The rows of `work` in its order: those that the log has, and the others as they are measured."""
    missing = [name for name in work if name not in log.rows]
    try:
        with progress(study.name, len(missing)) as advance:
            for name in missing:
                advance(0, name)
                try:
                    row = work[name](lambda text, name=name: advance(0, f"{name}: {text}"))  # type: ignore[misc]
                except GnnperfError as error:
                    row = {**study.about(name), "failures": [f"{name}: {error}"]}
                log.add(name, row)
                advance(1)
    except KeyboardInterrupt:
        if not any(name in log.rows for name in work):
            raise
    return {name: log.rows[name] for name in work if name in log.rows}


def _report(study: Study, result: BenchmarkResult, output: Path | None) -> Report:
    from rich.console import Group
    from rich.text import Text

    shorter = type(study).shown is not Study.shown
    shown = [study.shown(row) for row in result.rows] if shorter else None
    report = benchmark_report(result, shown, study.plots(result), output)
    notes = list(map(Text, study.notes(result.rows)))
    return replace(report, view=Group(report.view, Text(), *notes)) if notes else report


def _failure(measured: Mapping[str, Row], wanted: int, output: Path | None) -> GnnperfError | None:
    """What to fail with: fewer rows than wanted, or rows of what failed."""
    if len(measured) < wanted:
        kept = f"the same command goes on from {output}" if output else "with --output they would be kept"
        return Interrupted(f"interrupted with {len(measured)} of {wanted} rows; {kept}")
    wrong = [line for row in measured.values() for line in row.get("failures", ())]
    return GnnperfError("; ".join(wrong)) if wrong else None
