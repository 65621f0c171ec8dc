"""`gnnperf eval cost-model`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.measured import measure_rows, row_log, with_failure
from gnnperf.cli.eval.table import benchmark_report, write_document
from gnnperf.cli.eval.tensor_options import (
    config_option,
    held_out_workloads,
    only_option,
    output_option,
    ready_to_measure,
    skip_option,
    tensor_checkpoint_option,
)
from gnnperf.cli.output import Report, Verb

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult


@click.command("cost-model", cls=Verb, page=True)
@config_option
@tensor_checkpoint_option("--checkpoint", "Cost model.")
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(16, 100_000),
    help="With our model; XGBModel has twice as many.",
)  # fmt: skip
@click.option(
    "--workloads", "count", metavar="N", type=click.IntRange(1), default=12, show_default=True,
    help="The first N of them, in turn of all kinds.",
)  # fmt: skip
@only_option
@skip_option
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
    from gnnperf.backends.tvm.server import BenchServer

    chosen = held_out_workloads(config, only, skip)[:count]
    target = ready_to_measure(output)
    # Forked before torch is loaded.
    with BenchServer([workload.build() for workload in chosen], target) as server:
        from gnnperf.evaluation.tensor import describe_setup
        from gnnperf.evaluation.tensor.cost_model import CostModelStudy, summarise_cost_model

        study = CostModelStudy(chosen, server, target, checkpoint, trials, seed)
        settings: dict[str, Any] = {
            **describe_setup(), "checkpoint": checkpoint, "trials": trials, "seed": seed,
        }  # fmt: skip
        work = {w.name: partial(study.row, n) for n, w in enumerate(chosen)}
        rows = measure_rows("cost-model", work, row_log(output, settings))
    result = summarise_cost_model(rows, settings)
    write_document(result, output)
    return with_failure(_report(result), len(chosen), output)


def _report(result: BenchmarkResult) -> Report:
    """A table short enough for a terminal, with the whole rows behind it."""
    shown = [
        {
            "workload": row["workload"],
            "ours us": row.get("ours_s") and 1e6 * row["ours_s"],
            "xgb us": row.get("xgb_s") and 1e6 * row["xgb_s"],
            "ours s per trial": row.get("ours_seconds_per_trial"),
            "xgb s per trial": row.get("xgb_seconds_per_trial"),
            "note": "; ".join(row["failures"]),
        }
        for row in result.rows
    ]
    return benchmark_report(result, shown)
