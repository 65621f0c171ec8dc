"""`gnnperf eval cost-model`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.measured import measure_rows, with_failure
from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.eval.tensor_transfer import held_out_workloads
from gnnperf.cli.output import Report, Verb, to_json
from gnnperf.shipped import shipped, shipped_tensor_bundle

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult


@click.command("cost-model", cls=Verb, page=True)
@click.option(
    "--config", "-c", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
    default=lambda: shipped("configs/corpus/tensor.yaml"), show_default="configs/corpus/tensor.yaml",
    help="Whose workloads marked `split: held_out` are tuned.",
)  # fmt: skip
@click.option(
    "--checkpoint", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIR",
    default=shipped_tensor_bundle, show_default="the released one", help="Cost model.",
)  # fmt: skip
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(16, 100_000),
    help="With our model; XGBModel has twice as many.",
)  # fmt: skip
@click.option(
    "--workloads", "count", metavar="N", type=click.IntRange(1), default=12, show_default=True,
    help="The first N of them, in turn of all kinds.",
)  # fmt: skip
@click.option("--only", metavar="TEXT", help="Only workloads whose names contain TEXT, as `conv2d-`.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the searches.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Write the document of --json. Rows that are there already are not measured again.",
)  # fmt: skip
def cost_model(
    config: Path, checkpoint: Path, trials: int, count: int, only: str | None, seed: int,
    output: Path | None,
) -> Report:  # fmt: skip
    """MetaSchedule with our cost model, beside MetaSchedule with its own and twice the trials.

    Both search held-out workloads with the same settings and the same way of measuring, and what they find
    is timed in turn. ratio_64_vs_xgb_128: latency with XGBModel / latency with ours, higher is better.
    time_per_trial_ratio: seconds per trial with ours / with XGBModel, searching, building and measuring.
    Geometric means; what fails counts as the unscheduled function.
    """
    from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
    from gnnperf.retrieval.folder import check_output
    from gnnperf.tuning.tensor.collect import prepare
    from gnnperf.tuning.tensor.server import BenchServer

    chosen = held_out_workloads(config, only)[:count]
    if output is not None:
        check_output(output)
    set_runtime_threads()
    prepare()
    target = host_target()
    # Forked before torch is loaded.
    with BenchServer([workload.build() for workload in chosen], target) as server:
        from gnnperf.evaluation.cases import RowLog
        from gnnperf.evaluation.tensor import describe_setup
        from gnnperf.evaluation.tensor.cost_model import CostModelStudy, summarise_cost_model

        study = CostModelStudy(chosen, server, target, checkpoint, trials, seed)
        settings: dict[str, Any] = {
            **describe_setup(), "checkpoint": checkpoint, "trials": trials, "seed": seed,
        }  # fmt: skip
        log = RowLog(output, json.loads(to_json(settings)))
        work = {w.name: partial(study.row, n) for n, w in enumerate(chosen)}
        rows = measure_rows("cost-model", work, log)
    result = summarise_cost_model(rows, settings)
    if output is not None:
        (output / "cost-model.json").write_text(to_json(vars(result)) + "\n", encoding="utf-8")
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
