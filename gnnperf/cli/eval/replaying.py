"""What benchmarks that replay a corpus have in common: their options, and showing how far they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gnnperf.cli.options import corpora_option, quick_option
from gnnperf.cli.output import progress
from gnnperf.errors import InputError

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult
    from gnnperf.evaluation.replay import Folders
    from gnnperf.evaluation.transfer import ReplaySettings

F = TypeVar("F", bound=Callable[..., Any])


def replay_options(command: F) -> F:
    """`--corpus` as `corpora: tuple[Path, ...]`; `--split`, `--folds`, `--seed`, `--seeds`, `--workers`,
    `--quick` as they are, for `replay_settings`."""
    for option in (
        quick_option,
        click.option("--workers", default=2, show_default=True, help="Processes, of one thread each."),
        click.option("--seeds", default=1, show_default=True, help="Learn this often; figures are means."),
        click.option("--seed", default=0, show_default=True, help="Of the folds and of what is learned."),
        click.option(
            "--folds", default=5, show_default=True, help="Trainings per learned policy and seed."
        ),
        click.option(
            "--split", type=click.Choice(["family", "size"]), default="family", show_default=True,
            help="What is held out: families of kernels, or kernels at one size.",
        ),
        corpora_option,
    ):  # fmt: skip
        command = option(command)
    return command


def replay_settings(options: Mapping[str, Any], policies: Sequence[str] = ()) -> ReplaySettings:
    """Of the values of `replay_options` but the corpus; `policies`: those of
    `gnnperf eval transfer` if none. InputError for others than
    there are, and for numbers that make no sense."""
    from gnnperf.evaluation.rankers import POLICIES
    from gnnperf.evaluation.transfer import ReplaySettings

    if unknown := sorted(set(policies) - set(POLICIES)):
        raise InputError(f"--policy: expected one of {', '.join(POLICIES)}, got {unknown[0]}")
    for name in ("seeds", "workers"):
        if options[name] < 1:
            raise InputError(f"--{name}: expected at least 1, got {options[name]}")
    settings = ReplaySettings(**options)
    return replace(settings, policies=tuple(policies)) if policies else settings


def replayed(
    evaluate: Callable[..., BenchmarkResult], folders: Folders, settings: ReplaySettings
) -> BenchmarkResult:
    """What `evaluate(folders, corpus, settings, advance)` gives, of the corpus in the folders."""
    corpus = folders.load()
    with progress("replaying", len(settings.tasks(corpus))) as advance:
        return evaluate(folders, corpus, settings, advance)
