"""Compositions of dense linear algebra beside auto_optimize and NumPy."""

from __future__ import annotations

from typing import Any

import click

from benchmarks.comparisons import ComparisonStudy, Suite, comparison_options
from gnnperf.cli.output import Report, Verb

SUITE = Suite("linalg", ("numpy",))


@click.command("case-linalg", cls=Verb, page=True)
@comparison_options
def case_linalg(**options: Any) -> Report:
    """Compositions of dense linear algebra beside auto_optimize and NumPy.

    Chains of products, matrices with vectors, tensor contractions, covariances; each is tuned as `gnnperf
    retrieve -k K --no-store` does, and everything is verified and timed in turn, in one run. Speedups are
    those of ours over each, with 95% intervals. NumPy's products are those of the BLAS it comes with. Where
    auto_optimize fails, plain DaCe code stands in for it, and a note says so.
    """
    return ComparisonStudy.report("case-linalg", SUITE, **options)
