"""Sparse (CSR) times dense beside Intel MKL, SciPy and PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import click

from benchmarks.comparisons import BRIEF, ComparedRow, compare, title
from benchmarks.machine import setup
from benchmarks.mkl import code_path, find_mkl, mkl_source
from benchmarks.plots import plot_products
from benchmarks.sparse_products import Product, best_known, grid, scattered
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.options import nests_checkpoint_option
from gnnperf.cli.output import Report, Verb
from gnnperf.errors import GnnperfError, InputError
from gnnperf.evaluation import BenchmarkResult
from gnnperf.measure import Compiler, Runner
from gnnperf.measure.competitors import Effort
from gnnperf.schedules.recipes import Recipe
from gnnperf.session import Session

FASTEST, SHIPPED, ORACLE = "mkl_fastest", "mkl_shipped", "oracle"
COMPETITORS = (FASTEST, SHIPPED, "scipy", "torch")
CAPTION = "Speedup over both code paths of MKL, product by product, with 95% intervals."


@click.command("case-spmm", cls=Verb, page=True)
@nests_checkpoint_option
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
@output_option
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
    find_mkl()
    products = grid(quick and match is None)
    chosen = [product for product in products if (match or "") in product.name]
    if not chosen:
        raise InputError(f"--match: expected a part of a name like {products[0].name!r}, got {match!r}")
    return SpmmStudy(chosen, checkpoint, k, quick, oracle).run(output)


@dataclass(frozen=True)
class ComparedProduct:
    """One product of the grid. oracle: the best known schedule, which was timed with the others."""

    product: Product
    comparison: ComparedRow
    oracle: Recipe | None = None

    @property
    def oracle_speedup(self) -> float | None:
        """Of the best that is known, ours included, over MKL on its fastest path."""
        ours, oracle, mkl = (self.comparison.measurements.get(n) for n in ("ours", ORACLE, FASTEST))
        known = [m.runtime_s for m in (ours, oracle) if m is not None and m.runtime_s]
        if oracle is None or not known or mkl is None or not mkl.runtime_s:
            return None
        return mkl.runtime_s / min(known)

    def row(self) -> dict[str, Any]:
        """One row of the table; times in seconds, intervals of 95%."""
        found = self.comparison.row(COMPETITORS)
        oracle = self.comparison.measurements.get(ORACLE)
        return {
            "structure": self.product.structure,
            "size": self.product.size,
            "dtype": self.product.dtype,
            "features": self.product.features,
            "rows": self.product.rows,
            "nonzeros": self.product.nonzeros,
            "size_bytes": self.product.size_bytes,
            **{name: value for name, value in found.items() if name != "kernel"},
            "oracle_s": oracle and oracle.runtime_s,
            "oracle_vs_mkl_fastest": self.oracle_speedup,
            "oracle_schedule": self.oracle and self.oracle.describe(),
        }


def compare_product(
    product: Product, session: Session, k: int, effort: Effort, oracle: bool, say: Say
) -> ComparedProduct:
    """Tune one product with at most k measured candidates, and time it beside everything else."""
    kernel, best = product.kernel(), None
    with Compiler() as compiler:
        shape = (product.rows, product.rows, product.features, product.dtype)
        # Built one by one: in one library, MKL would take the path of both.
        mkl = {
            name: compiler.build(mkl_source(*shape, fastest=fastest))
            for name, fastest in ((FASTEST, True), (SHIPPED, False))
        }
        competitors: dict[str, Any] = {**mkl, **kernel.competitors}
        if oracle:
            say("measuring the best known schedules")
            try:
                with Runner() as runner:
                    best, library, _ = best_known(kernel, mkl[FASTEST], compiler, runner)
            except GnnperfError as error:
                return ComparedProduct(product, ComparedRow(kernel.name, None, {}, str(error)))
            competitors[ORACLE] = library
        found = compare(replace(kernel, competitors=competitors), session, k, effort, say)
        return ComparedProduct(product, found, best)


def mkl_kernels() -> dict[str, str]:
    """The library of kernels that MKL loads on either path. Raises InputError without MKL."""
    with Compiler() as compiler, Runner() as runner:
        return {
            name: code_path(compiler, runner, fastest=fastest)
            for name, fastest in ((FASTEST, True), (SHIPPED, False))
        }


@dataclass(frozen=True)
class SpmmStudy(Study):
    """Products of the grid. oracle: measure the best known schedules as well."""

    name = "case-spmm"

    products: Sequence[Product]
    checkpoint: Path
    k: int
    quick: bool
    oracle: bool

    @property
    def effort(self) -> Effort:
        return BRIEF if self.quick else Effort()

    def settings(self) -> Mapping[str, Any]:
        return {
            **setup("mkl", "dace", "scipy", "torch"), "mkl_kernels": mkl_kernels(), "k": self.k,
            "quick": self.quick, "oracle": self.oracle, "checkpoint": self.checkpoint, "effort": self.effort,
        }  # fmt: skip

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        session = Session(self.checkpoint, store=False)

        def row(product: Product, say: Say) -> Row:
            return compare_product(product, session, self.k, self.effort, self.oracle, say).row()

        return {product.name: partial(row, product) for product in scattered(self.products)}

    def table(self, measured: Mapping[str, Row]) -> Rows:
        """In the order of the grid."""
        return [measured[product.name] for product in self.products if product.name in measured]

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """Geometric means over the products that were compared."""
        shipped, fastest, oracle = (
            [row[name] for row in table if row[name]]
            for name in (f"vs_{SHIPPED}", f"vs_{FASTEST}", "oracle_vs_mkl_fastest")
        )
        figures: dict[str, float] = {}
        if shipped and fastest:
            figures["geomean_vs_mkl_shipped"] = geometric_mean(shipped)
            figures["geomean_vs_mkl_fastest"] = geometric_mean(fastest)
            figures["min_vs_mkl_fastest"] = min(fastest)
        if oracle:
            figures["oracle_vs_mkl_fastest"] = geometric_mean(oracle)
        figures["candidates_measured_max"] = max(
            (row["candidates_measured"] or 0 for row in table), default=0
        )
        return figures

    @staticmethod
    def shown(row: Row) -> Row:
        """Schedules and intervals are in the document."""
        cells = {name: row[name] for name in ("structure", "size", "dtype", "features")}
        cells["ours us"] = row["ours_s"] and 1e6 * row["ours_s"]
        for name in COMPETITORS:
            cells[f"vs {name}"] = row[f"vs_{name}"]
        cells["oracle"] = row["oracle_vs_mkl_fastest"]
        return {**cells, "candidates": row["candidates_measured"], "note": row["note"]}

    def plots(self, result: BenchmarkResult) -> Mapping[str, Callable[[Path], None]]:
        return {CAPTION: partial(plot_products, result.rows, title(result))}
