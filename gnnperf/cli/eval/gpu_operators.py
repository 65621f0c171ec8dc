"""`gnnperf eval gpu-operators`: operators on GPUs that were left out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.options import data_folder_option, plots_option
from gnnperf.cli.output import Report, Verb, progress

CAPTION = "Predicted and measured; what the 80% intervals hold, by GPU; errors, by distance of the GPU."


@click.command(cls=Verb, page=True)
@data_folder_option("gpu_operators.parquet")
@click.option(
    "--fit-on",
    type=click.Choice(["train", "all"]),
    default="train",
    show_default=True,
    help="Rows of the other GPUs: without the larger test shapes, or with them.",
)
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Processes.")
@plots_option
def gpu_operators(data: Path, fit_on: str, seeds: int, workers: int, output: Path | None) -> Report:
    """Predict operators on every GPU from measurements on the others.

    Errors in percent of the measured latency, by GPU and family, on the source's test rows (where a family
    has none on a GPU, on its training rows), beside the roofline, the roofline with one fitted efficiency per
    family, and boosted trees on flat features. Nothing is measured. mape is of the mean of the seeds' models,
    seeds_mape the mean of theirs; mape_after_5_runs that after as many runs of each family on the GPU (the
    mean over draws of the runs), small_kernel_mape of all rows below 0.1 ms. No network takes part. Linear
    rows of P4 are left out: they are inconsistent.
    """
    from gnnperf.evaluation.gpu.operators import OperatorSettings, evaluate_operators
    from gnnperf.evaluation.gpu.plot import plot_operators

    splits: dict[str, Any] = {"train": ("train",), "all": ("train", "test")}
    settings = OperatorSettings(data, splits[fit_on], tuple(range(seeds)), workers)
    with progress("fitting", 7 * (seeds + 1)) as advance:
        result, points = evaluate_operators(settings, advance)
    plot = partial(plot_operators, points, result.rows)
    return benchmark_report(result, plots={CAPTION: plot}, output=output)
