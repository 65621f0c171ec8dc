"""A study measures what its folder does not have; interrupted, it shows what it has and says how to go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gnnperf.cli.eval.study import Row, Rows, Say, Study
from gnnperf.cli.output import to_json
from gnnperf.errors import GnnperfError, InputError, Interrupted, MeasureError
from gnnperf.evaluation import BenchmarkResult


@dataclass(frozen=True)
class Sums(Study):
    """steps: what measures each row."""

    name = "sums"

    steps: Mapping[str, Callable[[Say], Row]]
    seed: int = 0

    def settings(self) -> Row:
        return {"seed": self.seed}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return self.steps

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        return {"sum": sum(row.get("value", 0) for row in table)}

    @staticmethod
    def notes(table: Rows) -> list[str]:
        return [f"{len(table)} [rows]"]

    def plots(self, result: BenchmarkResult) -> Mapping[str, Callable[[Path], None]]:
        def draw(path: Path) -> None:
            path.write_text(f"{path.suffix} {len(result.rows)}")

        return {"First.": draw, "Second.": draw}


def row(value: int, *failures: str) -> Callable[[Say], Row]:
    return lambda say: {"kernel": f"k{value}", "value": value, "failures": list(failures)}


def interrupted(say: Say) -> Row:
    raise KeyboardInterrupt


def broken(say: Say) -> Row:
    raise MeasureError("no compiler")


def test_rows_that_are_known_are_not_measured_again(tmp_path: Path) -> None:
    Sums({"b": row(2)}).run(tmp_path)
    report = Sums({"a": row(1), "b": interrupted}).run(tmp_path)
    assert [found["value"] for found in report.document["rows"]] == [1, 2]
    assert report.document["figures"] == {"sum": 3} and report.failure is None
    with pytest.raises(InputError, match="rows measured with seed 1, got 0"):
        Sums({"a": row(1)}, seed=1).run(tmp_path)


def test_the_document_and_the_plots_are_written(tmp_path: Path) -> None:
    report = Sums({"a": row(1)}).run(tmp_path)
    assert json.loads((tmp_path / "sums.json").read_text()) == json.loads(to_json(report.document))
    plots = {path.name: path.read_text() for path in tmp_path.glob("sums*.[ps][nv]g")}
    assert plots == {
        "sums.png": ".png 1",
        "sums.svg": ".svg 1",
        "sums-2.png": ".png 1",
        "sums-2.svg": ".svg 1",
    }


def test_an_interruption_ends_it_with_the_rows_there_are(tmp_path: Path) -> None:
    study = Sums({"a": row(1), "b": interrupted, "c": row(3)})
    report = study.run(tmp_path)
    assert [found["value"] for found in report.document["rows"]] == [1]
    assert isinstance(report.failure, Interrupted)
    assert str(report.failure) == f"interrupted with 1 of 3 rows; the same command goes on from {tmp_path}"
    assert str(study.run(None).failure) == "interrupted with 1 of 3 rows; with --output they would be kept"


def test_an_interruption_before_the_first_row_reports_nothing() -> None:
    with pytest.raises(KeyboardInterrupt):
        Sums({"a": interrupted}).run(None)


def test_failures_of_rows_are_failures_of_the_report(tmp_path: Path) -> None:
    assert Sums({"a": row(1)}).run(None).failure is None
    report = Sums({"a": row(1, "a: wrong"), "b": broken}).run(tmp_path)
    assert type(report.failure) is GnnperfError and str(report.failure) == "a: wrong; b: no compiler"
    assert report.document["rows"][1] == {"kernel": "b", "failures": ["b: no compiler"]}
    again = Sums({"a": row(4), "b": row(5)}).run(tmp_path)
    assert again.document["figures"] == {"sum": 9}, "what failed is measured again"
