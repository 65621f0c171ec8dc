"""`gnnperf eval gpu-models`: whole models on GPUs that were left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.options import data_folder_option
from gnnperf.cli.output import Report, Verb, progress


@click.command(cls=Verb, page=True)
@data_folder_option("gpu_operators, gpu_models_*.parquet")
@click.option(
    "--fit-on",
    type=click.Choice(["all", "train"]),
    default="all",
    show_default=True,
    help="Operators on the other GPUs: with the larger test shapes, or without them.",
)
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True)
def gpu_models(data: Path, fit_on: str, seeds: int) -> Report:
    """Predict whole models on every GPU from operators measured on the others.

    predicted_ms is of the operators as they run in a sequence: launches are hidden, and the board's power
    limits the energy of the whole. sum_ms adds up predictions for operators that run alone. Models whose
    graph does not say how often a layer is repeated are left out. Nothing is measured.
    """  # fmt: skip
    from gnnperf.evaluation.gpu.models import ModelSettings, evaluate_models

    splits: dict[str, Any] = {"train": ("train",), "all": ("train", "test")}
    settings = ModelSettings(data, splits[fit_on], tuple(range(seeds)))
    with progress("fitting", 7 * seeds) as advance:
        return benchmark_report(evaluate_models(settings, advance))
