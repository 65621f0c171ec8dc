"""`gnnperf eval ablation`: what is each part of the ranking worth?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnnperf.cli.eval.replaying import replay_options, replay_settings
from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.output import Report, Verb, progress


@click.command(cls=Verb, page=True)
@replay_options
def ablation(corpus: Path, **options: Any) -> Report:
    """Compare the released ranking of schedules with the same without one of its parts.

    Replayed from a corpus as by `gnnperf eval transfer`, nothing is measured: without dynamic profiles,
    without learning from pairs of measured speedups, without the graph network, without looking at the nest.
    Efficiency is the best known runtime over the best one reached with k candidates, the geometric mean over
    families; of ours: its share of that of the released recipe. Low and high end 95% intervals over families.
    """
    from gnnperf.evaluation.ablation import POLICIES, evaluate_ablation
    from gnnperf.evaluation.replay import Folders

    settings = replay_settings(options, POLICIES)
    folders = Folders(corpus)
    read = folders.load()
    with progress("replaying", len(settings.tasks(read))) as advance:
        return benchmark_report(evaluate_ablation(folders, read, settings, advance))
