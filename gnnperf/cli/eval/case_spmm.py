"""`gnnperf eval case-spmm`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.measured import Say, measure_rows, row_log, with_failure
from gnnperf.cli.eval.table import benchmark_report, write_document
from gnnperf.cli.options import checkpoint_option
from gnnperf.cli.output import Report, Verb

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult
    from gnnperf.evaluation.spmm import Product

CAPTION = "Speedup over both code paths of MKL, product by product, with 95% intervals."


@click.command("case-spmm", cls=Verb, page=True)
@checkpoint_option
@click.option(
    "-k", default=3, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per product."
)
@click.option("--quick", is_flag=True, help="A tenth of the grid, timed briefly: a first look.")
@click.option(
    "--match", metavar="TEXT", help="Only the products whose names contain TEXT, as `banded in_cache`."
)
@click.option(
    "--oracle", is_flag=True,
    help="Also measure a list of the best known schedules, and show the best on each matrix.",
)  # fmt: skip
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Write the plot (PNG and SVG) and the document of --json. Rows that are there already are not "
    "measured again.",
)  # fmt: skip
def case_spmm(
    checkpoint: Path, k: int, quick: bool, match: str | None, oracle: bool, output: Path | None
) -> Report:
    """Sparse (CSR) times dense beside Intel MKL, SciPy and PyTorch.

    Matrices of five structures, in and out of cache, fp32 and fp64, by dense ones of 16 to 256 columns. Ours
    is what `gnnperf retrieve -k K --no-store` makes of the plain program; MKL is the inspector-executor, as
    it ships and with its fast code path switched on, which it does not take by itself on CPUs of other
    vendors. Everything is verified and timed in turn, in one run. MKL is an optional extra:
    pip install 'gnnperf[mkl]'.
    """
    from gnnperf.errors import InputError
    from gnnperf.evaluation.cases import Effort, Released
    from gnnperf.evaluation.spmm import describe_setup, find_mkl, grid, run_product, scattered, summarise
    from gnnperf.retrieval.folder import check_output

    find_mkl()
    products = grid(quick and match is None)
    chosen = [product for product in products if (match or "") in product.name]
    if not chosen:
        raise InputError(f"--match: expected a part of a name like {products[0].name!r}, got {match!r}")
    if output is not None:
        check_output(output)
    effort = Effort(processes=1, budget_s=1.0) if quick else Effort()
    released = Released.load(checkpoint)
    settings = {
        **describe_setup(), "k": k, "quick": quick, "oracle": oracle, "checkpoint": checkpoint,
        "effort": effort,
    }  # fmt: skip

    def measure(product: Product, say: Say) -> dict[str, Any]:
        return run_product(product, released, k, effort, oracle, say).row()

    log = row_log(output, settings)
    work = {product.name: partial(measure, product) for product in scattered(chosen)}
    measure_rows("case-spmm", work, log)
    result = summarise([log.rows[p.name] for p in chosen if p.name in log.rows], settings)
    if output is not None:
        _write(output, result)
    shown = [_shown(row) for row in result.rows]
    report = benchmark_report(result, shown, {CAPTION: partial(_plot, result)})
    return with_failure(report, len(chosen), output)


def _write(output: Path, result: BenchmarkResult) -> None:
    write_document(result, output)
    for suffix in (".png", ".svg"):
        _plot(result, output / f"case-spmm{suffix}")


def _plot(result: BenchmarkResult, path: Path) -> None:
    from gnnperf.evaluation.spmm.plot import plot

    plot(result.rows, f"gnnperf, {result.settings['threads']} threads, {result.settings['name']}", path)


def _shown(row: dict[str, Any] | Any) -> dict[str, Any]:
    """A row short enough for a terminal: schedules and intervals are in the document."""
    cells = {name: row[name] for name in ("structure", "size", "dtype", "features")}
    cells["ours us"] = row["ours_s"] and 1e6 * row["ours_s"]
    for name in ("mkl_fastest", "mkl_shipped", "scipy", "torch"):
        cells[f"vs {name}"] = row[f"vs_{name}"]
    if row["oracle_s"] is not None:
        cells["oracle"] = row["oracle_vs_mkl_fastest"]
    return {**cells, "candidates": row["candidates_measured"], "note": row["note"]}
