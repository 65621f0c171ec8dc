"""`gnnperf tune`: a search with measurements, warm-started by retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from gnnperf.cli.options import kernel_options, measuring_options, open_session
from gnnperf.cli.output import Report, Verb, progress
from gnnperf.cli.retrieval_view import measured_report, saved


@click.command(cls=Verb, page=True)
@click.argument("kernel")
@kernel_options
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(1, 100_000),
    help="Schedules measured per nest, or task, those among them that your store knows from before.",
)  # fmt: skip
@measuring_options
def tune(
    kernel: str, trials: int, output: Path | None, checkpoint: Path | None, store_location: str | None,
    no_store: bool, **asked: Any,
) -> Report:  # fmt: skip
    """Search for faster schedules than retrieval finds.

    KERNEL is as for `gnnperf retrieve`. The search starts from what retrieval finds: schedules of the nearest
    kernels are measured first, and what is searched next grows from them, by MetaSchedule's evolutionary
    search for a TVM kernel, by mutations for a DaCe kernel; the network says what to measure. Every schedule
    is verified; the best are judged as `retrieve` judges them. What is measured goes to your store, a round
    at a time: interrupt the search and run it again, or with more trials, and it goes on; `gnnperf retrieve`
    finds it, too.
    """
    session = open_session(checkpoint, store_location, no_store)
    run = partial(session.tune, kernel, trials=trials, advance=_bar, **asked)
    result, failure = saved(run, output)
    return measured_report(result, failure, explain=False)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[int, str], None]]:
    with progress("tuning", total) as advance:
        yield lambda count, doing: advance(count, doing=doing)
