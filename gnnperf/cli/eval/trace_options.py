"""Options of benchmarks that learn from a corpus of TVM schedules."""

from __future__ import annotations

import click

from gnnperf.cli.options import ANY_FOLDER
from gnnperf.shipped import shipped

corpus_option = click.option(
    "--corpus", type=ANY_FOLDER, metavar="DIR",
    default=lambda: shipped("checkpoints/corpus/tensor"), show_default="the corpus that comes with gnnperf",
    help="Folder that `gnnperf collect` wrote, of TVM workloads.",
)  # fmt: skip

cache_option = click.option(
    "--cache", type=ANY_FOLDER, metavar="DIR",
    help="Where features of schedules are kept for the next time.  "
    "[default: tensor in $GNNPERF_CACHE, else in ~/.cache/gnnperf]",
)  # fmt: skip
