"""`gnnperf eval gpu-schedules`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.options import data_option, plots_option
from gnnperf.cli.output import Report, Verb, progress

EFFICIENCY = "Best of the first five over the optimum, on GPUs that were held out."
ERRORS = "Measured over predicted runtime on GPUs that were held out: median, 10th and 90th percentile."
DISTANCE = "Coverage, error and best of five over how unlike a GPU held out is to those learned from."


@click.command("gpu-schedules", cls=Verb, page=True)
@data_option("tunable_kernels.parquet")
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1), help="Networks to average.")
@click.option("--quick", is_flag=True, help="Hold out GPUs only, and train briefly: a first look.")
@plots_option
def gpu_schedules(data: Path | None, seeds: int, quick: bool, output: Path | None) -> Report:
    """Choose configurations of tunable kernels for GPUs, and of kernels, that nobody measured.

    Replayed from measured search spaces: every GPU in turn, every kernel in turn, and both at once are left
    out of all that is learned. A configuration's efficiency is the best runtime of the space on that GPU
    over its own, 0 where it fails. Beside: random, the best of the most similar GPU, geometric-mean rank
    over the other GPUs, a greedy portfolio, boosted trees on flat features.
    """
    from gnnperf.evaluation.gpu_schedules import StudySettings, evaluate_gpu_schedules, summarise
    from gnnperf.evaluation.gpu_schedules.plot import plot_distance, plot_efficiency, plot_errors
    from gnnperf.evaluation.gpu_schedules.study import GPU, NOMINAL, tasks
    from gnnperf.frontends.gpu_kernels.tables import data_path, load_tables
    from gnnperf.training.demand import DemandFitSettings

    path = data_path(data)
    tables = load_tables(path)
    settings = StudySettings(seeds, DemandFitSettings(steps=300), (GPU,)) if quick else StudySettings(seeds)
    with progress("gpu-schedules", sum(1 for _ in tasks(tables, settings.protocols))) as advance:
        rows, errors = evaluate_gpu_schedules(tables, settings, advance)
    result = summarise(rows, errors, settings, path.name)
    plots = {
        EFFICIENCY: partial(plot_efficiency, result.rows),
        ERRORS: partial(plot_errors, errors),
        DISTANCE: partial(plot_distance, result.rows, NOMINAL),
    }
    return benchmark_report(result, plots=plots, output=output, suffixes=("", "-runtime", "-distance"))
