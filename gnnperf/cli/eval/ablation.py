"""`gnnperf eval ablation`: what is each part of the ranking worth?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnnperf.cli.eval.replaying import replay_options, replay_settings, replayed
from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.options import ANY_FOLDER, FILE, FOLDER, LEARNED_FROM, refuse
from gnnperf.cli.output import Report, Verb, going_on, progress
from gnnperf.errors import InputError
from gnnperf.shipped import shipped


@click.command(cls=Verb, page=True)
@replay_options
@click.option(
    "--measure", "folder", type=ANY_FOLDER, metavar="DIR",
    help="Measure what each would try on nests of every family, out of all known schedules, on this machine; "
    "DIR keeps what is done, so that an interrupted run goes on.",
)  # fmt: skip
@click.option(
    "--recorded", type=FOLDER, metavar="DIR",
    help="Print the table of what an earlier --measure left in DIR; nothing is trained or measured.",
)  # fmt: skip
@click.option(
    "--per-family", type=click.IntRange(1), metavar="N",
    help="With --measure: nests of every family.  [default: 2]",
)  # fmt: skip
@click.option(
    "--config", "configs", type=FILE, multiple=True, metavar="FILE",
    help="With --measure: what the corpora were collected with; may be repeated.  [default: those of the "
    "corpora that come with gnnperf]",
)  # fmt: skip
@click.option(
    "--beside", "others", type=FILE, multiple=True, metavar="JSON",
    help="What gnnperf eval tensor-ranking, gpu-operators or gpu-schedules printed with --json: the ablation "
    "of that model joins table and figures. May be repeated.",
)  # fmt: skip
def ablation(
    corpora: tuple[Path, ...],
    folder: Path | None,
    recorded: Path | None,
    per_family: int | None,
    configs: tuple[Path, ...],
    others: tuple[Path, ...],
    **options: Any,
) -> Report:
    """Compare the released ranking of schedules with the same without one of its parts.

    Families are held out as by `gnnperf eval transfer`. Candidates are those that the corpus has measured,
    and nothing is measured; or, with --measure, all that is known elsewhere. What does without the network is
    given the same numbers; nests_ratio_at_1 is the network over the best that does without. Efficiency is
    the best known runtime over the best one reached with k candidates, the geometric mean over families; of
    ours: its share of that of the whole. Low and high end 95% intervals over families. The other models come
    in with --beside.
    """
    from gnnperf.corpus.config import NestConfig, load_config
    from gnnperf.evaluation.ablation import (
        POLICIES,
        Measuring,
        add_beside,
        evaluate_ablation,
        measure_ablation,
        read_beside,
        recorded_ablation,
    )
    from gnnperf.evaluation.benchmark import BenchmarkResult
    from gnnperf.evaluation.replay import Folders

    documents = read_beside(others)

    def report(result: BenchmarkResult) -> Report:
        return benchmark_report(add_beside(result, documents) if documents else result)

    if recorded is not None:
        context = click.get_current_context()
        refuse(context, "--recorded", "corpora", "folder", "per_family", "configs", *options)
        return report(recorded_ablation(recorded))
    settings = replay_settings(options, POLICIES)
    folders = Folders(corpora)
    if folder is None:
        for option, value in (("--per-family", per_family), ("--config", configs)):
            if value:
                raise InputError(f"{option} is for --measure; leave it out, or give --measure DIR")
        return report(replayed(evaluate_ablation, folders, settings))
    if options["split"] != "family":
        raise InputError("--measure is for families that are held out; leave --split out")
    chosen = configs or tuple(shipped("configs/corpus") / f"{name}.yaml" for name in LEARNED_FROM)
    loaded = [load_config(path) for path in chosen]
    for path, config in zip(chosen, loaded, strict=True):
        if not isinstance(config, NestConfig):
            raise InputError(f"--config: expected a configuration of nests, got {path}; give another one")
    nests = [config for config in loaded if isinstance(config, NestConfig)]
    measuring = Measuring(
        folder, nests, per_family or 2, lambda text: click.echo(f"left out: {text}", err=True)
    )
    with going_on(lambda: f"{folder} keeps what is done"):
        result = measure_ablation(folders, folders.load(), settings, measuring, progress)
    return report(result)
