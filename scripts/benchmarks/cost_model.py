"""Searches of held-out workloads: `gnnperf tune`, and MetaSchedule with our cost model and with its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import click

from benchmarks.metaschedule import SearchTrial, best_of, best_s, metaschedule, xgboost_model
from benchmarks.options import (
    held_out_workloads,
    ready_to_measure,
    tensor_checkpoint_option,
    workload_options,
)
from benchmarks.tvm_in_turn import (
    DEFAULT,
    about_workload,
    program_of,
    timed_in_turn,
    tuned,
    tvm_setup,
)
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.cli.eval.study import Row, Rows, Say, Study, output_option
from gnnperf.cli.output import Report, Verb
from gnnperf.frontends.tvm.spaces import workload_generator
from gnnperf.frontends.tvm.vector_math import needs_vector_math
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure.interleaved import Pace

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.program import TvmProgram
    from gnnperf.session import Session

OURS, XGB, TUNE = "ours", "xgb", "tune"
Column = Callable[[Row], float | None]
"""Of a row."""
TRIALS = 64
"""Trials of MetaSchedule with our model; with XGBModel, and of `gnnperf tune`, twice as many."""


@click.command("cost-model", cls=Verb, page=True)
@workload_options(12)
@tensor_checkpoint_option("--checkpoint", "Cost model.")
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(16, 100_000),
    help="Of MetaSchedule with our model; with XGBModel, and of `gnnperf tune`, twice as many.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the searches.")
@output_option
def cost_model(
    config: Path, checkpoint: Path, trials: int, count: int, only: str | None, skip: tuple[str, ...],
    seed: int, output: Path | None,
) -> Report:  # fmt: skip
    """`gnnperf tune`, and MetaSchedule with our cost model, beside MetaSchedule with its own.

    All search held-out workloads with the same way of measuring, MetaSchedule with the same settings, but
    with our model half the trials. What is found is timed in turn. ratio_64_vs_xgb_128: latency with XGBModel
    / latency with our model, higher is better; tune_vs_xgb: with XGBModel / of tune. tune_vs_xgb_after_N: as
    measured in the searches, after N trials each; tune_vs_xgb_in_time: after the time that the first to end
    took. With _no_exp at the end, without workloads with exponentials, for which MetaSchedule calls the C
    library. time_per_trial_ratio: seconds per trial with our model / with XGBModel, searching, building and
    measuring; tune_search_time_ratio: of tune's whole search. Geometric means; what fails counts as the
    unscheduled function.
    """
    chosen = held_out_workloads(config, only, skip)[:count]
    target = ready_to_measure()
    # Forked before torch is loaded.
    with BenchServer([workload.build() for workload in chosen], target) as server:
        from gnnperf.session import Session

        session = Session(checkpoint, store=False)
        return CostModelStudy(chosen, server, target, checkpoint, session, trials, seed).run(output)


@dataclass(frozen=True)
class CostModelStudy(Study):
    """One run of the benchmark. checkpoint: of our cost model. trials: of the search with it."""

    name = "cost-model"
    key = "workload"

    workloads: Sequence[TvmWorkload]
    server: BenchServer
    target: Any
    checkpoint: Path
    session: Session
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
        """The searches on workload `number`, one after the other, whose turn is first taking turns; what they
        found is then timed in turn."""
        workload = self.workloads[number]
        row: dict[str, Any] = {"workload": workload.name, "kind": workload.kind, "failures": []}
        self.server.baseline(number)
        found: dict[str, list[SearchTrial]] = {}
        for name in (OURS, XGB, TUNE) if number % 2 == 0 else (TUNE, XGB, OURS):
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
            row[f"{name}_best_after_s"] = {str(n): best_s(trials[:n]) for n in _powers(len(trials))}
            row[f"{name}_search_s"] = trials[-1].after_s if trials else 0.0
        # Both have had the time that the first to end took.
        end_s = min(row[f"{name}_search_s"] for name in (TUNE, XGB))
        for name in (TUNE, XGB):
            row[f"{name}_best_in_time_s"] = best_s([t for t in found[name] if t.after_s <= end_s])
        row["default_s"] = timed[DEFAULT].runtime_s
        row["vector_math"] = needs_vector_math(workload.build())
        return row

    def _search(self, name: str, number: int, say: Say) -> tuple[list[SearchTrial], float]:
        """The trials, and wall time over their number: searching, building and measuring."""
        from gnnperf.integrations.tvm import GNNCostModel

        workload, count = self.workloads[number], self.trials if name == OURS else 2 * self.trials
        module, model = workload.build(), None  # tune has its own
        if name != TUNE:
            model = GNNCostModel(self.checkpoint) if name == OURS else xgboost_model()
        say(name)
        started = time.perf_counter()
        if name == TUNE:
            trials = tuned(self.session, self.program, number, self.server, count)
        else:
            measure = partial(self.server.measure, number)
            notify = lambda text: say(f"{name}: {text}")  # noqa: E731
            trials = metaschedule(
                module, self.target, count, measure, self.seed, notify, model, workload_generator(workload)
            )
        return trials, (time.perf_counter() - started) / max(1, len(trials))

    @cached_property
    def program(self) -> TvmProgram:
        return program_of(self.workloads, self.target)

    @staticmethod
    def figures(table: Rows) -> Mapping[str, float]:
        """See `cost_model`: geometric means."""
        good = [row for row in table if not row["failures"]]
        figures: dict[str, float] = {"workloads": len(good)}
        if not good:
            return figures

        def mean(rows: Rows, above: Column, below: Column) -> float:
            return geometric_mean([(above(r) or r["default_s"]) / (below(r) or r["default_s"]) for r in rows])

        def after(name: str, trials: str) -> Column:
            return lambda row: row[f"{name}_best_after_s"].get(trials)

        of = itemgetter
        figures["ratio_64_vs_xgb_128"] = mean(good, of("xgb_s"), of("ours_s"))
        trial_s = of("ours_seconds_per_trial"), of("xgb_seconds_per_trial")
        figures["time_per_trial_ratio"] = mean(good, *trial_s)
        figures["tune_search_time_ratio"] = mean(good, of("tune_search_s"), of("xgb_search_s"))
        # MetaSchedule's schedules call libm for exponentials, those of tune do not.
        plain = [row for row in good if not row["vector_math"]]
        for rows, which in ((good, ""), (plain, "_no_exp")):
            if not rows:
                continue
            figures[f"tune_vs_xgb{which}"] = mean(rows, of("xgb_s"), of("tune_s"))
            in_time = of("xgb_best_in_time_s"), of("tune_best_in_time_s")
            figures[f"tune_vs_xgb_in_time{which}"] = mean(rows, *in_time)
            for trials in sorted({n for row in rows for n in row["xgb_best_after_s"]}, key=int):
                figures[f"tune_vs_xgb_after_{trials}{which}"] = mean(
                    rows, after(XGB, trials), after(TUNE, trials)
                )
        return figures

    @staticmethod
    def shown(row: Row) -> Row:
        return {
            "workload": row["workload"],
            "ours us": row.get("ours_s") and 1e6 * row["ours_s"],
            "xgb us": row.get("xgb_s") and 1e6 * row["xgb_s"],
            "tune us": row.get("tune_s") and 1e6 * row["tune_s"],
            "ours s per trial": row.get("ours_seconds_per_trial"),
            "xgb s per trial": row.get("xgb_seconds_per_trial"),
            "tune s per trial": row.get("tune_seconds_per_trial"),
            "note": "; ".join(row["failures"]),
        }


def _powers(count: int) -> list[int]:
    return [2**n for n in range(count.bit_length()) if 2**n <= count]
