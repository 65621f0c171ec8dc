"""Figures, rows and the picture of case-spmm; and one product from the kernel to the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.case_spmm import ComparedProduct, SpmmStudy
from benchmarks.comparisons import ComparedRow
from benchmarks.mkl import mkl_source
from benchmarks.plots import plot_products
from benchmarks.sparse_products import KNOWN, Product, best_known, grid

from gnnperf.measure import Compiler, Measurement, Runner
from gnnperf.retrieval import RetrievalReport
from gnnperf.schedules.recipes import Recipe

PRODUCT = Product("banded", "in_cache", "float32", 64)


def timed(seconds: float) -> Measurement:
    return Measurement("ok", seconds, (0.9 * seconds, 1.1 * seconds), 18)


def result(product: Product = PRODUCT, **measurements: Measurement) -> ComparedProduct:
    retrieval = RetrievalReport(
        kernel="spmm", device="cpu", baseline_name="dace-auto", baseline_note="", baseline=None, tuned=None,
        speedup=None, speedup_interval=None, verified=True, kept_baseline=False, note="",
        candidates_measured=3, wall_s=1.0, nests=[], skipped=[],
    )  # fmt: skip
    everything = {"auto_optimize": timed(9.0), "scipy": timed(8.0), "torch": timed(4.0), **measurements}
    oracle = Recipe(order="rowtile") if "oracle" in measurements else None
    return ComparedProduct(product, ComparedRow(product.name, retrieval, everything), oracle)


def test_figures_are_geometric_means() -> None:
    figures = SpmmStudy.figures(
        [
            result(ours=timed(1.0), mkl_fastest=timed(2.0), mkl_shipped=timed(4.0), oracle=timed(0.5)).row(),
            result(ours=timed(1.0), mkl_fastest=timed(0.5), mkl_shipped=timed(1.0), oracle=timed(2.0)).row(),
        ]
    )
    assert figures == {
        "geomean_vs_mkl_shipped": pytest.approx(2.0),
        "geomean_vs_mkl_fastest": pytest.approx(1.0),
        "min_vs_mkl_fastest": pytest.approx(0.5),
        "oracle_vs_mkl_fastest": pytest.approx((4.0 * 0.5) ** 0.5),  # the best known, ours included
        "candidates_measured_max": 3,
    }


def test_the_oracle_has_no_figure_where_it_was_not_measured() -> None:
    row = result(ours=timed(1.0), mkl_fastest=timed(2.0), mkl_shipped=timed(4.0)).row()
    assert "oracle_vs_mkl_fastest" not in SpmmStudy.figures([row])
    assert row["oracle_vs_mkl_fastest"] is None


def test_rows_say_what_was_multiplied() -> None:
    row = result(ours=timed(1.0), mkl_fastest=timed(2.0), mkl_shipped=timed(4.0)).row()
    assert [row[n] for n in ("structure", "size", "dtype", "features")] == [
        "banded",
        "in_cache",
        "float32",
        64,
    ]
    assert (row["rows"], row["nonzeros"]) == (8192, 16 * 8192)
    assert row["vs_torch"] == pytest.approx(4.0)


def test_a_product_that_failed_is_a_row_without_figures() -> None:
    broken = ComparedProduct(PRODUCT, ComparedRow(PRODUCT.name, None, {}, "MKL failed"))
    assert SpmmStudy.figures([broken.row()]) == {"candidates_measured_max": 0}
    assert broken.row().keys() == result(ours=timed(1.0)).row().keys()
    assert broken.comparison.wrong == [f"{PRODUCT.name}: MKL failed"]


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_picture_shows_every_product(tmp_path: Path, suffix: str) -> None:
    rows = [
        result(p, ours=timed(1.0), mkl_fastest=timed(2.0), mkl_shipped=timed(4.0), oracle=timed(0.9)).row()
        for p in grid(quick=True)
    ]
    rows.append(ComparedProduct(PRODUCT, ComparedRow(PRODUCT.name, None, {}, "MKL failed")).row())
    path = tmp_path / f"plot{suffix}"
    plot_products(rows, "title", path)
    if suffix == ".svg":
        text = path.read_text(encoding="utf-8")
        assert all(f">{p.structure} {p.features}<" in text for p in [*grid(quick=True), PRODUCT])
    else:
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.needs("mkl")
def test_the_best_known_schedule_of_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.sparse_products.DENSE_BYTES", {"in_cache": 1 << 15})
    kernel = PRODUCT.kernel()
    with Compiler() as compiler, Runner() as runner:
        mkl = compiler.build(mkl_source(PRODUCT.rows, PRODUCT.rows, 64, "float32", fastest=True))
        recipe, library, measurement = best_known(kernel, mkl, compiler, runner)
    assert recipe in KNOWN
    assert measurement.status == "ok" and library.path
