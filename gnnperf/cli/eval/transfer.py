"""`gnnperf eval transfer`: does what was measured on other nests help this one?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnnperf.cli.eval.replaying import replay_options, replay_settings, replayed
from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.options import ANY_FOLDER
from gnnperf.cli.output import Report, Verb


@click.command(cls=Verb, page=True)
@replay_options
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Only this; may be repeated.")
@click.option(
    "--trials", type=ANY_FOLDER, metavar="DIR",
    help="Judge by what this corpus measured of the same nests, for example on another CPU. No policy sees "
    "it; the oracle then takes the fastest schedules of the nest itself by the other corpora.",
)  # fmt: skip
@click.option("--families", is_flag=True, help="Show every family, and how ours depends on confidence.")
def transfer(
    corpora: tuple[Path, ...], policies: tuple[str, ...], trials: Path | None, families: bool, **options: Any
) -> Report:
    """Compare ways to choose schedules for a nest from what is known of others.

    Replayed from a corpus, nothing is measured. Every nest is asked for once, of policies that know no nest
    of its fold; its first k candidates are those that the corpus has measured on it. Efficiency is the best
    known runtime over the best one reached, the baseline included: the geometric mean over families.
    """
    from gnnperf.evaluation.replay import Folders
    from gnnperf.evaluation.scores import ALL
    from gnnperf.evaluation.transfer import evaluate_transfer

    settings = replay_settings(options, policies)
    result = replayed(evaluate_transfer, Folders(corpora, trials), settings)
    if families:
        return benchmark_report(result)
    all_nests = [dict(row) for row in result.rows if row["subset"] == ALL]
    for row in all_nests:
        del row["subset"], row["nests"]
    return benchmark_report(result, all_nests)
