"""A case study that is interrupted shows what it has measured, and says how to go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gnnperf.cli.eval.measured import Say, measure_rows, with_failure
from gnnperf.cli.output import Report
from gnnperf.errors import GnnperfError, Interrupted
from gnnperf.evaluation.cases import RowLog


def row(value: int, *failures: str) -> dict[str, Any]:
    return {"value": value, "failures": list(failures)}


def interrupted(say: Say) -> dict[str, Any]:
    raise KeyboardInterrupt


def test_rows_that_are_known_are_not_measured_again(tmp_path: Path) -> None:
    RowLog(tmp_path, {}).add("b", row(2))
    work = {"a": lambda say: row(1), "b": interrupted}
    assert measure_rows("t", work, RowLog(tmp_path, {})) == [row(1), row(2)]


def test_an_interruption_ends_it_with_the_rows_there_are(tmp_path: Path) -> None:
    work = {"a": lambda say: row(1), "b": interrupted, "c": lambda say: row(3)}
    rows = measure_rows("t", work, RowLog(None, {}))
    assert rows == [row(1)]
    failure = with_failure(Report({"rows": rows}, ""), 3, tmp_path).failure
    assert isinstance(failure, Interrupted)
    assert str(failure) == f"interrupted with 1 of 3 rows; the same command goes on from {tmp_path}"
    lost = with_failure(Report({"rows": rows}, ""), 3, None).failure
    assert str(lost) == "interrupted with 1 of 3 rows; with --output they would be kept"


def test_an_interruption_before_the_first_row_reports_nothing() -> None:
    with pytest.raises(KeyboardInterrupt):
        measure_rows("t", {"a": interrupted}, RowLog(None, {}))


def test_failures_of_rows_are_failures_of_the_report() -> None:
    good = Report({"rows": [row(1)]}, "")
    assert with_failure(good, 1, None).failure is None
    failure = with_failure(Report({"rows": [row(1, "a: broken"), row(2, "b: wrong")]}, ""), 2, None).failure
    assert type(failure) is GnnperfError and str(failure) == "a: broken; b: wrong"
