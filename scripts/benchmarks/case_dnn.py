"""Pieces of neural networks beside auto_optimize and PyTorch."""

from __future__ import annotations

from typing import Any

import click

from benchmarks.comparisons import ComparisonStudy, Suite, comparison_options
from gnnperf.cli.output import Report, Verb

SUITE = Suite("dnn", ("torch", "torch-compile"))


@click.command("case-dnn", cls=Verb, page=True)
@comparison_options
def case_dnn(**options: Any) -> Report:
    """Pieces of neural networks beside auto_optimize and PyTorch.

    Softmax, norms, attention, feed-forward blocks, convolutions, a loss; each is tuned as `gnnperf retrieve
    -k K --no-store` does, and everything is verified and timed in turn, in one run. Speedups are those of
    ours over each, with 95% intervals. PyTorch runs its fused operators eagerly, and compiled. Where
    auto_optimize fails, plain DaCe code stands in for it, and a note says so.
    """
    return ComparisonStudy.report("case-dnn", SUITE, **options)
