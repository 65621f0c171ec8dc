"""`gnnperf eval export`: what exported models and stores cost."""

from __future__ import annotations

from pathlib import Path

import click

from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.options import checkpoint_option
from gnnperf.cli.output import Report, Verb, progress


@click.command(cls=Verb, page=True)
@checkpoint_option
@click.option(
    "--client", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="PATH",
    help="A built gnnperf-client.  [default: it is built, with optimisation]",
)  # fmt: skip
@click.option(
    "--nests", default=1_000_000, show_default=True, type=click.IntRange(1000),
    help="Made-up nests in the store that is searched.",
)  # fmt: skip
@click.option("--repeat", default=300, show_default=True, type=click.IntRange(20), help="Embeddings timed.")
@click.option("--aoti/--no-aoti", default=True, help="Compile the model too, which takes a minute or two.")
def export(checkpoint: Path, client: Path | None, nests: int, repeat: int, aoti: bool) -> Report:
    """Time the C++ client, and searches in a store of a million nests.

    Everything runs on one thread. The graph that is embedded is the nest of the store nearest to 60 nodes.
    The nests that are searched are made up: vectors between pairs of known embeddings, with noise. Recall
    is of the ten nearest, beside a comparison with every vector. Parity is the largest difference of any
    number of an embedding to the encoder in Python, over 200 nests, one by one and in a batch, TorchScript
    and AOTInductor, Python and C++.
    """
    from gnnperf.evaluation.exported import ExportSettings, evaluate_export
    from gnnperf.evaluation.exported.study import STEPS

    settings = ExportSettings(nests, repeat, aoti=aoti)
    with progress("measuring", STEPS) as advance:
        result = evaluate_export(checkpoint, client, settings, advance)
    return benchmark_report(result)
