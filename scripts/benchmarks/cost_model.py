"""MetaSchedule with our cost model, beside MetaSchedule with its own and twice the trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import click

from benchmarks.metaschedule import SearchTrial, best_of, best_s, metaschedule, xgboost_model
from benchmarks.options import (
    held_out_workloads,
    ready_to_measure,
    tensor_checkpoint_option,
    workload_options,
)
from benchmarks.tvm_in_turn import DEFAULT, about_workload, timed_in_turn, tvm_setup
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.output import Report, Verb
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.interleaved import Pace

OURS, XGB = "ours", "xgb"
TRIALS = 64
"""Trials with our model; XGBModel has twice as many."""


@click.command("cost-model", cls=Verb, page=True)
@workload_options(12)
@tensor_checkpoint_option("--checkpoint", "Cost model.")
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(16, 100_000),
    help="With our model; XGBModel has twice as many.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the searches.")
@output_option
def cost_model(
    config: Path, checkpoint: Path, trials: int, count: int, only: str | None, skip: tuple[str, ...],
    seed: int, output: Path | None,
) -> Report:  # fmt: skip
    """MetaSchedule with our cost model, beside MetaSchedule with its own and twice the trials.

    Both search held-out workloads with the same settings and the same way of measuring, and what they find
    is timed in turn. ratio_64_vs_xgb_128: latency with XGBModel / latency with ours, higher is better.
    time_per_trial_ratio: seconds per trial with ours / with XGBModel, searching, building and measuring.
    Geometric means; what fails counts as the unscheduled function.
    """
    chosen = held_out_workloads(config, only, skip)[:count]
    target = ready_to_measure()
    # Forked before torch is loaded.
    with BenchServer([workload.build() for workload in chosen], target) as server:
        return CostModelStudy(chosen, server, target, checkpoint, trials, seed).run(output)


@dataclass(frozen=True)
class CostModelStudy(Study):
    """One run of the benchmark. checkpoint: of our cost model. trials: of the search with it."""

    name = "cost-model"
    key = "workload"

    workloads: Sequence[TvmWorkload]
    server: BenchServer
    target: Any
    checkpoint: Path
    trials: int = TRIALS
    seed: int = 0
    pace: Pace = field(default_factory=lambda: Pace(rounds=10, budget_s=6.0))

    def settings(self) -> Mapping[str, Any]:
        return {**tvm_setup(), "checkpoint": self.checkpoint, "trials": self.trials, "seed": self.seed}

    def work(self) -> Mapping[str, Callable[[Say], Row]]:
        return {workload.name: partial(self.row, n) for n, workload in enumerate(self.workloads)}

    def about(self, name: str) -> dict[str, Any]:
        return about_workload(self.workloads, name)

    def row(self, number: int, say: Say) -> Row:
        """Both searches on workload `number`, one after the other, whose turn is first taking turns; what
        they found is then timed in turn."""
        workload = self.workloads[number]
        row: dict[str, Any] = {"workload": workload.name, "kind": workload.kind, "failures": []}
        self.server.baseline(number)
        found: dict[str, list[SearchTrial]] = {}
        for name in (OURS, XGB) if number % 2 == 0 else (XGB, OURS):
            found[name], row[f"{name}_seconds_per_trial"] = self._search(name, number, say)
        say("timing in turn")
        chosen = {name: best.module for name, trials in found.items() if (best := best_of(trials))}
        timed = timed_in_turn(self.server, number, workload, chosen, self.target, self.pace, False)
        for name, trials in found.items():
            # What is not there, or failed, leaves the user with the unscheduled function.
            measured = timed.get(name)
            right = measured is not None and measured.runtime_s
            row[f"{name}_s"] = right or timed[DEFAULT].runtime_s
            row[f"{name}_trials"] = len(trials)
            row[f"{name}_best_after_s"] = {n: best_s(trials[:n]) for n in _powers(len(trials))}
        return row

    def _search(self, name: str, number: int, say: Say) -> tuple[list[SearchTrial], float]:
        """The trials, and wall time over their number: searching, building and measuring."""
        from gnnperf.integrations.tvm import GNNCostModel

        workload = self.workloads[number]
        module = workload.build()
        ours = name == OURS
        model = GNNCostModel(self.checkpoint) if ours else xgboost_model()
        started = time.perf_counter()
        trials = metaschedule(
            workload,
            module,
            self.target,
            self.trials if ours else 2 * self.trials,
            partial(self.server.measure, number),
            self.seed,
            lambda text: say(f"{name}: {text}"),
            model,
        )
        return trials, (time.perf_counter() - started) / max(1, len(trials))

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """Geometric means: ratio_64_vs_xgb_128 of latency XGBModel / ours after all trials of either (higher
        is better), time_per_trial_ratio of seconds per trial ours / XGBModel (lower is better)."""
        good = [row for row in table if not row["failures"]]
        figures: dict[str, float] = {}
        if good:
            figures["ratio_64_vs_xgb_128"] = geometric_mean([row["xgb_s"] / row["ours_s"] for row in good])
            figures["time_per_trial_ratio"] = geometric_mean(
                [row["ours_seconds_per_trial"] / row["xgb_seconds_per_trial"] for row in good]
            )
        figures["workloads"] = len(good)
        return figures

    @staticmethod
    def shown(row: Row) -> Row:
        return {
            "workload": row["workload"],
            "ours us": row.get("ours_s") and 1e6 * row["ours_s"],
            "xgb us": row.get("xgb_s") and 1e6 * row["xgb_s"],
            "ours s per trial": row.get("ours_seconds_per_trial"),
            "xgb s per trial": row.get("xgb_seconds_per_trial"),
            "note": "; ".join(row["failures"]),
        }


def _powers(count: int) -> list[int]:
    return [2**n for n in range(count.bit_length()) if 2**n <= count]
