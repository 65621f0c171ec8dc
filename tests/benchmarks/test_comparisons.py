"""The table of a case study: speedups, what is left out of them, and what makes it fail."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.case_dnn import SUITE as DNN
from benchmarks.case_linalg import SUITE as LINALG
from benchmarks.case_stencils import SUITE as STENCILS
from benchmarks.case_sweeps import SUITE as SWEEPS
from benchmarks.comparisons import ComparedRow, ComparisonStudy, Suite
from benchmarks.plots import plot_kernels

from gnnperf.errors import InputError
from gnnperf.measure import Measurement
from gnnperf.retrieval import RetrievalReport

TINY = Suite("kernels_tiny", ("numpy",), Path(__file__).parent)


def timed(seconds: float) -> Measurement:
    return Measurement("ok", seconds, (0.9 * seconds, 1.1 * seconds), 18)


def told(kept_baseline: bool = False, note: str = "") -> RetrievalReport:
    return RetrievalReport(
        kernel="k", device="cpu", baseline_name="dace-simplify" if note else "dace-auto", baseline_note=note,
        baseline=None, tuned=None, speedup=None, speedup_interval=None, verified=True,
        kept_baseline=kept_baseline, note="", candidates_measured=4, wall_s=1.0, nests=[], skipped=[],
    )  # fmt: skip


def result(name: str = "k", **measurements: Measurement) -> ComparedRow:
    return ComparedRow(name, told(), measurements)


def test_speedups_and_their_intervals() -> None:
    row = result(ours=timed(2.0), auto_optimize=timed(6.0), numpy=timed(1.0)).row(("numpy",))
    assert row["ours_s"] == 2.0
    assert row["vs_auto_optimize"] == pytest.approx(3.0)
    assert row["vs_auto_optimize_interval"] == pytest.approx((5.4 / 2.2, 6.6 / 1.8))
    assert row["vs_numpy"] == pytest.approx(0.5)


def test_a_kept_baseline_is_exactly_as_fast_as_itself() -> None:
    auto = timed(3.0)
    row = ComparedRow("k", told(kept_baseline=True), {"ours": auto, "auto_optimize": auto}).row(())
    assert (row["vs_auto_optimize"], row["vs_auto_optimize_interval"]) == (1.0, (1.0, 1.0))
    assert row["kept"] == "baseline"


def test_a_fallback_of_the_baseline_is_said() -> None:
    found = ComparedRow(
        "k", told(note="auto_optimize failed: no BLAS"), {"ours": timed(1), "auto_optimize": timed(2)}
    )
    row = found.row(())
    assert row["baseline"] == "dace-simplify"
    assert "auto_optimize failed: no BLAS" in row["note"]
    assert row["vs_auto_optimize"] == pytest.approx(2.0)


def test_a_missing_competitor_leaves_its_column_empty_and_says_so() -> None:
    missing = Measurement("not_applicable", detail="numba is not installed")
    found = result(ours=timed(1), auto_optimize=timed(2), numba=missing)
    row = found.row(("numba",))
    assert row["numba_s"] is None and row["vs_numba"] is None
    assert "numba is not installed" in row["note"]
    assert found.wrong == []
    assert "geomean_vs_numba" not in ComparisonStudy.figures([found.row(("numba",))])


def test_a_wrong_competitor_is_reported() -> None:
    wrong = Measurement("wrong_result", detail="y: 1 of 9 elements differ")
    found = result(ours=timed(1), auto_optimize=timed(2), numpy=wrong)
    assert found.wrong == ["k: numpy: wrong_result: y: 1 of 9 elements differ"]
    row = found.row(("numpy",))
    assert row["vs_numpy"] is None and "1 of 9 elements differ" in row["note"]


def test_a_kernel_that_cannot_be_tuned_is_a_row_and_a_failure() -> None:
    found = ComparedRow("k", None, {}, "DaCe cannot parse 'k'")
    assert found.wrong == ["k: DaCe cannot parse 'k'"]
    row = found.row(("numpy",))
    assert row["note"] == "DaCe cannot parse 'k'" and row["ours_s"] is None
    assert row.keys() == result(ours=timed(1), auto_optimize=timed(1)).row(("numpy",)).keys()


def test_geometric_means_are_over_what_was_compared() -> None:
    results = [
        result("a", ours=timed(1), auto_optimize=timed(2), numpy=timed(9)),
        result("b", ours=timed(1), auto_optimize=timed(8), numpy=Measurement("timeout", detail="slow")),
        ComparedRow("c", None, {}, "broken"),
    ]
    figures = ComparisonStudy.figures([found.row(("numpy",)) for found in results])
    assert figures["geomean_vs_auto_optimize"] == pytest.approx(4.0)
    assert figures["min_vs_auto_optimize"] == pytest.approx(2.0)
    assert figures["geomean_vs_numpy"] == pytest.approx(9.0)
    assert figures["kernels"] == 3


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plot_shows_every_kernel(tmp_path: Path, suffix: str) -> None:
    rows = [
        result("first", ours=timed(1), auto_optimize=timed(2), numpy=timed(0.5)).row(("numpy",)),
        ComparedRow("second", None, {}, "broken").row(("numpy",)),
    ]
    path = tmp_path / f"plot{suffix}"
    plot_kernels(rows, ("auto_optimize", "numpy"), "title", path)
    if suffix == ".svg":
        text = path.read_text(encoding="utf-8")
        assert all(f">{word}<" in text for word in ("first", "second", "auto_optimize", "numpy"))
    else:
        assert path.read_bytes().startswith(b"\x89PNG")


# --------------------------------------------------------------------------- the suites


def test_kernels_are_chosen_by_name() -> None:
    assert [kernel.name for kernel in TINY.kernels()] == ["axpy", "smooth"]
    (kernel,) = TINY.kernels(["smooth"])
    assert kernel.symbols == {"N": 900, "STEPS": 3}
    assert kernel.inputs is not None and kernel.inputs.endswith(":inputs_smooth")
    with pytest.raises(InputError, match="expected some of axpy, smooth, got 'smoth'"):
        TINY.kernels(["axpy", "smoth"])


@pytest.mark.parametrize("suite", [DNN, LINALG, STENCILS, SWEEPS], ids=lambda suite: suite.name)
def test_every_kernel_has_a_version_of_every_competitor(suite: Suite) -> None:
    """Checked on the text, as Numba need not be installed."""
    programs = functions(suite.file)
    tree = ast.parse(suite.file.read_text(encoding="utf-8"))
    (sizes,) = (
        n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "SIZES"
    )
    for name, symbols in ast.literal_eval(sizes).items():
        for kernel in suite.kernels([name]):
            assert tuple(kernel.competitors) == suite.competitors
            for competitor, found in kernel.competitors.items():
                known = functions(found.path)
                assert set(known[name]) <= {*programs[name], *symbols}, f"{name} in {competitor}"
        assert set(programs.get(f"inputs_{name}", ())) <= set(symbols)


def test_pytorch_runs_eagerly_and_compiled() -> None:
    (kernel,) = DNN.kernels(["attention"])
    eager, compiled = kernel.competitors["torch"], kernel.competitors["torch-compile"]
    assert eager == replace(compiled, compiled="") and compiled.compiled == "torch"


def functions(path: Path) -> dict[str, list[str]]:
    """Names and parameters of the functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {n.name: [a.arg for a in n.args.args] for n in tree.body if isinstance(n, ast.FunctionDef)}


def test_rows_are_json(tmp_path: Path) -> None:
    row = result(ours=timed(1), auto_optimize=timed(2)).row(("numpy",))
    assert json.loads(json.dumps(row))["vs_auto_optimize"] == pytest.approx(2.0)
