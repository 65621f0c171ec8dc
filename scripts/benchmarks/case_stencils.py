"""Weather-like stencils beside auto_optimize, NumPy and Numba."""

from __future__ import annotations

from typing import Any

import click

from benchmarks.comparisons import ComparisonStudy, Suite, comparison_options
from gnnperf.cli.output import Report, Verb

SUITE = Suite("stencils", ("numpy", "numba"))


@click.command("case-stencils", cls=Verb, page=True)
@comparison_options
def case_stencils(**options: Any) -> Report:
    """Weather-like stencils beside auto_optimize, NumPy and Numba.

    Horizontal and vertical diffusion, advection, shallow water, chains of stencils and column solves; each is
    tuned as `gnnperf retrieve -k K --no-store` does, and everything is verified and timed in turn, in one
    run. Speedups are those of ours over each, with 95% intervals. Numba compiles with parallel and fastmath;
    it is an optional extra (pip install 'gnnperf[numba]'), and without it its column is empty. Where
    auto_optimize fails, plain DaCe code stands in for it, and a note says so.
    """
    return ComparisonStudy.report("case-stencils", SUITE, **options)
