"""What `gnnperf eval case-stencils`, `case-dnn` and `case-linalg` have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gnnperf.cli.eval.measured import Say, measure_rows, row_log, with_failure
from gnnperf.cli.eval.table import benchmark_report, write_document
from gnnperf.cli.options import checkpoint_option
from gnnperf.cli.output import Report, to_json

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult
    from gnnperf.evaluation.cases import Case, Suite

F = TypeVar("F", bound=Callable[..., Any])

QUICK_KERNELS = 3
CAPTION = "Speedup over each competitor, with 95% intervals. A bar that hangs down is a loss."


def _names(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in (value or "").split(","))))


kernels_option = click.option(
    "--kernels", metavar="NAME,...", callback=_names, help="These kernels only.  [default: all]"
)


def case_options(command: F) -> F:
    """`--kernels`, `--quick`, `-k`, `--output`, `--checkpoint`."""
    for option in (
        checkpoint_option,
        click.option(
            "--output", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
            help="Write the plot (PNG and SVG), the document of --json, and what retrieve said. Rows that "
            "are there already are not measured again.",
        ),
        click.option(
            "-k", default=5, show_default=True, type=click.IntRange(1, 100),
            help="Candidates measured per nest.",
        ),
        click.option(
            "--quick", is_flag=True, help=f"The first {QUICK_KERNELS} kernels, timed briefly: a first look."
        ),
        kernels_option,
    ):  # fmt: skip
        command = option(command)
    return command


def run_suite(
    which: str | Suite, kernels: tuple[str, ...], quick: bool, k: int, output: Path | None, checkpoint: Path
) -> Report:
    """Run a suite (or the one of that name), kernel by kernel. What went wrong is in the table, and makes
    the exit code 1."""
    from gnnperf.evaluation.cases import SUITES, Effort, Released, describe_setup, run_case, summarise
    from gnnperf.retrieval.folder import check_output

    suite = SUITES[which] if isinstance(which, str) else which
    cases = suite.cases(kernels)
    if quick and not kernels:
        cases = cases[:QUICK_KERNELS]
    if output is not None:
        check_output(output)
    effort = Effort(processes=1, budget_s=1.0) if quick else Effort()
    released = Released.load(checkpoint)

    def measure(case: Case, say: Say) -> dict[str, Any]:
        found = run_case(case, released, k, effort, say)
        if output is not None and found.retrieval is not None:
            said = to_json(found.retrieval.to_dict())
            (output / f"{case.name}.json").write_text(said + "\n", encoding="utf-8")
        return found.row(suite.competitors)

    settings = {**describe_setup(suite), "k": k, "quick": quick, "checkpoint": checkpoint, "effort": effort}
    work = {case.name: partial(measure, case) for case in cases}
    rows = measure_rows(f"case-{suite.name}", work, row_log(output, settings))
    result = summarise(suite, rows, settings)
    if output is not None:
        _write(output, suite, result)
    return with_failure(_report(suite, result), len(cases), output)


def _write(output: Path, suite: Suite, result: BenchmarkResult) -> None:
    write_document(result, output)
    for suffix in (".png", ".svg"):
        _plot(suite, result, output / f"{result.benchmark}{suffix}")


def _plot(suite: Suite, result: BenchmarkResult, path: Path) -> None:
    from gnnperf.evaluation.cases.plot import plot

    title = f"gnnperf, {result.settings['threads']} threads, {result.settings['name']}"
    plot(result.rows, _competitors(suite), title, path)


def _competitors(suite: Suite) -> tuple[str, ...]:
    return ("auto_optimize", *suite.competitors)


# --------------------------------------------------------------------------- for people


def _report(suite: Suite, result: BenchmarkResult) -> Report:
    from rich.console import Group
    from rich.text import Text

    shown = [_shown(row, _competitors(suite)) for row in result.rows]
    notes = [Text(f"{row['kernel']}: {row['note']}") for row in result.rows if row["note"]]
    report = benchmark_report(result, shown, {CAPTION: partial(_plot, suite, result)})
    return replace(report, view=Group(report.view, *([Text(), *notes] if notes else [])))


def _shown(row: Mapping[str, Any], competitors: tuple[str, ...]) -> dict[str, Any]:
    """A row short enough for a terminal: the schedules are in the documents."""
    cells = {"kernel": row["kernel"], "ours": None}
    if row["ours_s"] is not None:
        runtime, lo, hi = (f"{t * 1e3:#.3g}".rstrip(".") for t in (row["ours_s"], *row["ours_interval_s"]))
        cells["ours"] = f"{runtime} [{lo}, {hi}] ms"
    for name in competitors:
        speedup, interval = row[f"vs_{name}"], row[f"vs_{name}_interval"]
        cells[f"vs {name}"] = interval and f"{speedup:.2f}x [{interval[0]:.2f}, {interval[1]:.2f}]"
    kept = row["kept"] and row["kept"].partition(":")[0]
    return {**cells, "candidates": row["candidates_measured"], "kept": kept}
