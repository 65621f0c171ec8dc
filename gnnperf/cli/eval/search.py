"""`gnnperf eval search`: how much searching do a few transferred candidates save?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gnnperf.cli.eval.replaying import replay_options, replay_settings, replayed
from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.options import ANY_FOLDER, refuse, released_trials
from gnnperf.cli.output import Report, Verb


@click.command(cls=Verb, page=True)
@replay_options
@click.option(
    "--trials", type=ANY_FOLDER, default=released_trials, metavar="DIR",
    show_default="the released ones", help="Long searches of some nests (configs/corpus/random_search.yaml).",
)  # fmt: skip
@click.option("--no-trials", is_flag=True, help="Use the searches that are in the corpus itself.")
def search(corpora: tuple[Path, ...], trials: Path, no_trials: bool, **options: Any) -> Report:
    """Count the trials that searches need to match the first 1, 3 and 5 transferred candidates.

    Replayed, nothing is measured. Random search tries recorded random schedules in every order: the number
    of trials is the mean over all orders. Evolutionary search is the recorded one. A tie is a match. Where a
    search never matched in what was recorded, the number recorded is the least it can be, and is counted.
    """
    from gnnperf.errors import InputError
    from gnnperf.evaluation.replay import Folders
    from gnnperf.evaluation.search import evaluate_search

    if no_trials:
        refuse(click.get_current_context(), "--no-trials", "trials")
    elif not trials.is_dir():
        raise InputError(
            f"expected a folder of searches, got {trials}; measure them with `gnnperf collect "
            "configs/corpus/random_search.yaml`, or give --no-trials"
        )
    settings = replay_settings(options, policies=["ours"])
    folders = Folders(corpora, None if no_trials else trials)
    return benchmark_report(replayed(evaluate_search, folders, settings))
