"""`gnnperf eval case-dnn`."""

from __future__ import annotations

from typing import Any

import click

from gnnperf.cli.eval.cases import case_options, run_suite
from gnnperf.cli.output import Report, Verb


@click.command("case-dnn", cls=Verb, page=True)
@case_options
def case_dnn(**options: Any) -> Report:
    """Pieces of neural networks beside auto_optimize and torch.

    Softmax, norms, attention, feed-forward blocks, convolutions, a loss; each is tuned as `gnnperf retrieve
    -k K --no-store` does, and everything is verified and timed in turn, in one run. Speedups are those of
    ours over each, with 95% intervals. Torch runs its fused operators, eagerly. Where auto_optimize fails,
    plain DaCe code stands in for it, and a note says so.
    """
    return run_suite("dnn", **options)
