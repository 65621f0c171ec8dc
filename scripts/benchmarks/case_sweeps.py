"""Sweeps whose elements need the ones before, beside auto_optimize and Numba."""

from __future__ import annotations

from typing import Any

import click

from benchmarks.comparisons import ComparisonStudy, Suite, comparison_options
from gnnperf.cli.output import Report, Verb

SUITE = Suite("sweeps", ("numba",))


@click.command("case-sweeps", cls=Verb, page=True)
@comparison_options
def case_sweeps(**options: Any) -> Report:
    """Sweeps whose elements need the ones before, beside auto_optimize and Numba.

    Alignments of sequences, paths in a grid, solvers and filters that work in place; each is tuned as
    `gnnperf retrieve -k K --no-store` does, and everything is verified and timed in turn, in one run.
    Speedups are those of ours over each, with 95% intervals. Numba compiles with fastmath, on one thread; it
    is an optional extra (pip install 'gnnperf[numba]'), and without it its column is empty. NumPy has no
    array expressions for these. Where auto_optimize fails, plain DaCe code stands in for it, and a note says
    so.
    """
    return ComparisonStudy.report("case-sweeps", SUITE, **options)
