"""The study of GPUs and kernels held out, its baselines against cases worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import gpu_world

from gnnperf.devices import load_device
from gnnperf.evaluation.gpu.distance import device_distance, nearest_distance
from gnnperf.evaluation.gpu_schedules import StudySettings, evaluate_gpu_schedules, summarise
from gnnperf.evaluation.gpu_schedules.baselines import (
    geometric_mean_rank,
    greedy_portfolio,
    nearest_gpu,
)  # fmt: skip
from gnnperf.evaluation.gpu_schedules.plot import plot_distance, plot_efficiency, plot_errors
from gnnperf.evaluation.gpu_schedules.study import (
    BOTH,
    GPU,
    KERNEL,
    NOMINAL,
    covered,
    errors_after_runs,
    half_widths,
    tasks,
)
from gnnperf.frontends.gpu_kernels.tables import GpuTable, load_tables
from gnnperf.nn.demand import ANY, LEVELS
from gnnperf.retrieval.check import random_best
from gnnperf.retrieval.configurations import ConfigurationRanking
from gnnperf.training.demand import DemandFitSettings


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[GpuTable]:
    """A kernel on three GPUs, and another on a fourth."""
    rows = gpu_world.rows(("gemm",), gpu_world.GPUS[:3], 40)
    rows += gpu_world.rows(("pnpoly",), gpu_world.GPUS[3:], 40)
    return load_tables(gpu_world.write(tmp_path_factory.mktemp("data") / "t.parquet", rows))


def test_expected_best_of_random_ones() -> None:
    efficiency = np.array([0.2, 1.0, 0.4])
    assert random_best(efficiency, 1) == pytest.approx(1.6 / 3)
    assert random_best(efficiency, 2) == pytest.approx((1.0 + 1.0 + 0.4) / 3)
    assert random_best(efficiency, 3) == 1.0


def with_runtimes(table: GpuTable, gpu: str, runtimes: Sequence[float]) -> GpuTable:
    return GpuTable(
        table.description, table.device, table.configurations[: len(runtimes)], table.space, gpu,
        np.array(runtimes),
    )  # fmt: skip


def test_baselines_by_hand(tables: Sequence[GpuTable]) -> None:
    here = with_runtimes(tables[0], "here", [1, 1, 1, 1])
    one = with_runtimes(tables[1], "one", [1, 2, 1.25, np.nan])
    other = with_runtimes(tables[2], "other", [4, 1, 1.25, 2])
    # Ranks: 1 3 2 4 and 4 1 2 3; geometric means: 2, 1.73, 2, 3.46
    assert geometric_mean_rank(here, [one, other], 1) == [1]
    # Mean efficiencies: 0.625, 0.75, 0.8, 0.25; with the third chosen, the first two add 0.1 each
    assert greedy_portfolio(here, [one, other], 2)[0] == 2
    assert nearest_gpu(here, [one], 2) == [0, 2]


def test_nothing_held_out_is_learned_from(tables: Sequence[GpuTable]) -> None:
    found = list(tasks(tables, (GPU, KERNEL, BOTH)))
    assert {t.protocol for t in found} == {GPU, KERNEL, BOTH}
    for task in found:
        for table in task.tables:
            for learned in task.train:
                assert task.protocol == KERNEL or learned.gpu != table.gpu
                assert task.protocol == GPU or learned.kernel != table.kernel


def test_runs_take_a_constant_error_off(tables: Sequence[GpuTable]) -> None:
    table = tables[0]
    log2_ms = np.log2(np.where(table.ok, table.runtime_ms, 99.0))
    guess = log2_ms - log2_ms.min()
    ranking = ConfigurationRanking(log2_ms - 1.5, guess, guess[None], np.ones(1))
    assert all(np.abs(e).max() < 0.2 for e in errors_after_runs(ranking, table))
    flat = ConfigurationRanking(0 * guess, 0 * guess, 0 * guess[None], np.ones(1))
    assert all(np.abs(e).max() > 0.2 for e in errors_after_runs(flat, table))


def test_coverage_is_judged_with_other_gpus_only() -> None:
    errors = {("s", "a"): np.full(10, 1.0), ("s", "b"): np.full(10, 2.0)}
    rows = [
        {"held_out": GPU, "kernel": "k", "space": space, "gpu": gpu}
        | {f"error_{level}": error[0] for level in LEVELS}
        for (space, gpu), error in errors.items()
    ]
    assert covered(rows, errors, "80") == {("s", "a"): 1.0, ("s", "b"): 0.0}
    wide = [{**row, "held_out": of, "error_80": 9.0} for row in rows for of in (KERNEL, BOTH)]
    assert covered(rows + wide, errors, "80") == covered(rows, errors, "80")
    assert half_widths(rows + wide, "error")["k"]["80"] == 1.5, "as released, of all GPUs"
    assert half_widths(wide, "error") == {ANY: {"50": 1.5, "80": 9.0, "95": 1.5}}


def test_the_study_of_a_made_up_world(tables: Sequence[GpuTable], tmp_path: Path) -> None:
    settings = StudySettings(1, DemandFitSettings(steps=30))
    done = []
    rows, errors = evaluate_gpu_schedules(tables, settings, lambda n, text="": done.append(n))
    result = summarise(rows, errors, settings, "made up")
    assert sum(done) == len(list(tasks(tables, settings.protocols))) == 3 + 2 + 4
    assert [row["held_out"] for row in rows].count(GPU) == 3
    figures = result.figures
    assert figures["heldout_gpu_top5"] >= figures["heldout_gpu_top1"] > figures["random_top1"]
    assert figures["heldout_gpu_top5"] >= figures["heldout_gpu_min_top5"]
    named = "heldout_gpu_top1 heldout_gpu_top5 heldout_gpu_min_top5 geomean_rank_top1 portfolio_top5"
    named += " heldout_kernel_top5 random_top5 runtime_mdape_0 runtime_mdape_5 coverage80"
    assert set(named.split()) <= set(figures)
    plot_efficiency(result.rows, tmp_path / "efficiency.svg")
    plot_errors(errors, tmp_path / "errors.png")
    assert "portfolio" in (tmp_path / "efficiency.svg").read_text()
    assert (tmp_path / "errors.png").stat().st_size > 1000
    plot_distance(result.rows, NOMINAL, tmp_path / "distance.svg")
    assert "doublings to the most similar GPU" in (tmp_path / "distance.svg").read_text()


def test_a_gpu_is_no_distance_from_itself_and_far_from_another() -> None:
    l4, t4, h200 = (load_device(name) for name in ("l4", "t4", "h200"))
    assert device_distance(l4, l4) == 0
    assert device_distance(l4, h200) == device_distance(h200, l4)
    assert nearest_distance(l4, [t4, h200]) == min(device_distance(l4, d) for d in (t4, h200))
    nearer = replace(h200, bandwidth_gbps=(h200.bandwidth_gbps or 0) / 2, l2_bytes=h200.l2_bytes)
    assert device_distance(nearer, h200) == pytest.approx(1.0)
