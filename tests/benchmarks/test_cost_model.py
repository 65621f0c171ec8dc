"""The benchmark of our cost model in MetaSchedule's search: one workload from end to end, and the table."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from benchmarks import metaschedule
from benchmarks.cost_model import CostModelStudy
from benchmarks.run import benchmarks
from helpers.tensor_world import write_checkpoint

from gnnperf.cli.main import run
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.target import set_runtime_threads

CONFIG = """
workloads:
  - {kind: matmul, m: 24, n: 32, k: 40, split: held_out}
  - {kind: matmul, m: 64, n: 64, k: 64}
"""


def brief_evolution() -> Any:
    from tvm.s_tir import meta_schedule as ms

    return ms.search_strategy.EvolutionarySearch(
        population_size=32, init_min_unmeasured=16, genetic_num_iters=1
    )


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    import_tvm()
    set_runtime_threads(1)


@pytest.mark.slow
def test_the_command_measures_a_row_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(tmp_path)
    monkeypatch.setattr(metaschedule, "evolution", brief_evolution)
    (tmp_path / "corpus.yaml").write_text(CONFIG)
    command = ["cost-model", "-c", tmp_path / "corpus.yaml", "--checkpoint", tmp_path]
    command += ["--trials", 16, "--output", tmp_path / "out", "--json"]
    assert run([str(word) for word in command], benchmarks) == 0, capfd.readouterr().err
    found = json.loads(capfd.readouterr().out)
    assert json.loads((tmp_path / "out" / "cost-model.json").read_text()) == found
    (row,) = found["rows"]
    assert row["workload"] == "matmul-m_24-n_32-k_40" and row["failures"] == []
    assert (row["ours_trials"], row["xgb_trials"], row["tune_trials"]) == (16, 32, 32)
    assert list(row["xgb_best_after_s"]) == ["1", "2", "4", "8", "16", "32"]
    for name in ("ours", "xgb", "tune"):
        assert 0 < row[f"{name}_s"] < 1 and row[f"{name}_seconds_per_trial"] > 0
        best = [*row[f"{name}_best_after_s"].values()]
        assert best == sorted(best, reverse=True)
    figures = found["figures"]
    assert figures["workloads"] == 1
    assert figures["ratio_64_vs_xgb_128"] == pytest.approx(row["xgb_s"] / row["ours_s"])
    last = {name: row[f"{name}_best_after_s"]["32"] for name in ("xgb", "tune")}
    assert figures["tune_vs_xgb_after_32"] == pytest.approx(last["xgb"] / last["tune"])
    first = min(("xgb", "tune"), key=lambda name: row[f"{name}_search_s"])
    assert row[f"{first}_best_in_time_s"] == last[first]  # it had all its time
    monkeypatch.setattr(CostModelStudy, "row", lambda *_: pytest.fail("measured again"))
    assert run([str(word) for word in command], benchmarks) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == [row]
    assert run([str(word) for word in [*command, "--skip", "matmul"]], benchmarks) == 2
    assert "--skip 'matmul'" in capfd.readouterr().err


def test_figures_are_geometric_means() -> None:
    row = {
        "failures": [], "ours_s": 1.0, "tune_s": 0.5, "ours_seconds_per_trial": 3.0, "default_s": 8.0,
        "xgb_seconds_per_trial": 1.0, "xgb_best_after_s": {"1": None, "2": 4.0}, "vector_math": False,
        "tune_best_after_s": {"1": 2.0, "2": 2.0}, "xgb_best_in_time_s": 4.0, "tune_best_in_time_s": 2.0,
        "xgb_search_s": 60.0, "tune_search_s": 30.0,
    }  # fmt: skip
    rows = [
        {**row, "xgb_s": 2.0},
        {**row, "xgb_s": 8.0, "ours_seconds_per_trial": 12.0, "vector_math": True},
    ]
    figures = CostModelStudy.figures([*rows, {"failures": ["no compiler"]}])
    assert figures == pytest.approx(
        {
            "ratio_64_vs_xgb_128": 4.0, "time_per_trial_ratio": 6.0, "tune_search_time_ratio": 0.5,
            "tune_vs_xgb": 8.0, "tune_vs_xgb_in_time": 2.0, "tune_vs_xgb_after_1": 4.0,
            "tune_vs_xgb_after_2": 2.0, "tune_vs_xgb_no_exp": 4.0, "tune_vs_xgb_in_time_no_exp": 2.0,
            "tune_vs_xgb_after_1_no_exp": 4.0, "tune_vs_xgb_after_2_no_exp": 2.0, "workloads": 2,
        }
    )  # fmt: skip
    assert CostModelStudy.figures([]) == {"workloads": 0}
