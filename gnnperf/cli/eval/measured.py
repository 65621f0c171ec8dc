"""What all case studies have in common: row after row is measured and kept, also when one is interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnperf.cli.output import Report, progress, to_json
from gnnperf.errors import GnnperfError, Interrupted

if TYPE_CHECKING:
    from gnnperf.evaluation.cases import RowLog

Say = Callable[[str], None]
Measure = Callable[[Say], Mapping[str, Any]]


def row_log(output: Path | None, settings: Mapping[str, Any]) -> RowLog:
    """The rows of a folder, or of memory alone. InputError: it has rows measured with other settings."""
    from gnnperf.evaluation.cases import RowLog

    return RowLog(output, json.loads(to_json(settings)))


def measure_rows(title: str, work: Mapping[str, Measure], log: RowLog) -> list[dict[str, Any]]:
    """The rows of `work` in its order: those that `log` knows, and the others as they are measured. Ctrl-C
    ends it early with the rows there are; with none, it raises KeyboardInterrupt as anywhere else."""
    missing = [name for name in work if name not in log.rows]
    try:
        with progress(title, len(missing)) as advance:
            for name in missing:
                advance(0, name)
                log.add(name, work[name](lambda text, name=name: advance(0, f"{name}: {text}")))  # type: ignore[misc]
                advance(1)
    except KeyboardInterrupt:
        if not any(name in log.rows for name in work):
            raise
    return [log.rows[name] for name in work if name in log.rows]


def with_failure(report: Report, wanted: int, output: Path | None) -> Report:
    """The report, failing where it has fewer rows than wanted, or rows of what failed."""
    rows = report.document["rows"]
    if len(rows) < wanted:
        return interrupted(report, len(rows), wanted, output)
    wrong = [line for row in rows for line in row["failures"]]
    return replace(report, failure=GnnperfError("; ".join(wrong))) if wrong else report


def interrupted(report: Report, done: int, wanted: int, output: Path | None) -> Report:
    """The report of what there is, failing."""
    kept = f"the same command goes on from {output}" if output else "with --output they would be kept"
    return replace(report, failure=Interrupted(f"interrupted with {done} of {wanted} rows; {kept}"))
