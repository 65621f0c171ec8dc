"""GNNCostModel in MetaSchedule's search, beside MetaSchedule's own XGBModel with twice the trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gnnperf.backends.tvm.server import BenchServer
from gnnperf.errors import GnnperfError
from gnnperf.evaluation.benchmark import BenchmarkResult
from gnnperf.evaluation.metrics import geometric_mean
from gnnperf.evaluation.tensor.contenders import DEFAULT, timed_in_turn
from gnnperf.evaluation.tensor.search import Trial, best_of, metaschedule, xgboost_model
from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.measure.interleaved import Pace

OURS, XGB = "ours", "xgb"
TRIALS = 64
"""Trials with our model; XGBModel has twice as many."""


@dataclass(frozen=True)
class CostModelStudy:
    """One run of the benchmark. checkpoint: of our cost model. trials: of the search with it."""

    workloads: Sequence[Workload]
    server: BenchServer
    target: Any
    checkpoint: Path
    trials: int = TRIALS
    seed: int = 0
    pace: Pace = field(default_factory=lambda: Pace(rounds=10, budget_s=6.0))

    def row(self, number: int, notify: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
        """Both searches on workload `number`, one after the other, whose turn is first taking turns; what
        they found is then timed in turn."""
        workload = self.workloads[number]
        row: dict[str, Any] = {"workload": workload.name, "kind": workload.kind, "failures": []}
        try:
            self.server.baseline(number)
            found: dict[str, list[Trial]] = {}
            for name in (OURS, XGB) if number % 2 == 0 else (XGB, OURS):
                found[name], row[f"{name}_seconds_per_trial"] = self._search(name, number, notify)
            notify("timing in turn")
            chosen = {name: best.module for name, trials in found.items() if (best := best_of(trials))}
            timed = timed_in_turn(self.server, number, workload, chosen, self.target, self.pace, False)
        except GnnperfError as error:
            return {**row, "failures": [f"{workload.name}: {error}"]}
        for name, trials in found.items():
            # What is not there, or failed, leaves the user with the unscheduled function.
            measured = timed.get(name)
            right = measured is not None and measured.runtime_s
            row[f"{name}_s"] = right or timed[DEFAULT].runtime_s
            row[f"{name}_trials"] = len(trials)
            row[f"{name}_best_after_s"] = {n: _best_s(trials[:n]) for n in _powers(len(trials))}
        return row

    def _search(self, name: str, number: int, notify: Callable[[str], None]) -> tuple[list[Trial], float]:
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
            lambda text: notify(f"{name}: {text}"),
            model,
        )
        return trials, (time.perf_counter() - started) / max(1, len(trials))


def summarise_cost_model(rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> BenchmarkResult:
    """The table, and geometric means: ratio_64_vs_xgb_128 of latency XGBModel / ours after all trials of
    either (higher is better), time_per_trial_ratio of seconds per trial ours / XGBModel (lower is better)."""
    good = [row for row in rows if not row["failures"]]
    figures: dict[str, float] = {}
    if good:
        figures["ratio_64_vs_xgb_128"] = geometric_mean([row["xgb_s"] / row["ours_s"] for row in good])
        figures["time_per_trial_ratio"] = geometric_mean(
            [row["ours_seconds_per_trial"] / row["xgb_seconds_per_trial"] for row in good]
        )
    figures["workloads"] = len(good)
    return BenchmarkResult("cost-model", figures, rows, settings)


def _powers(count: int) -> list[int]:
    return [2**n for n in range(count.bit_length()) if 2**n <= count]


def _best_s(trials: Sequence[Trial]) -> float | None:
    """As measured during the search."""
    found = best_of(trials)
    return found.outcome.runtime_s if found else None
