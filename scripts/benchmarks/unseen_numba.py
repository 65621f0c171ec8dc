"""The kernels that the corpus does not hold, beside Numba (parallel, fastmath)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from benchmarks.comparisons import ComparisonStudy, Suite, comparison_options
from gnnperf.cli.output import Report, Verb

SUITE = Suite("unseen", ("numba",), Path(__file__).parents[2] / "tests" / "e2e" / "kernels")


@click.command("unseen-numba", cls=Verb, page=True)
@comparison_options
def unseen_numba(**options: Any) -> Report:
    """The kernels that the corpus does not hold, beside Numba (parallel, fastmath).

    Every kernel of tests/e2e/kernels/unseen.py is tuned as `gnnperf retrieve -k K --no-store` does. What it
    gives, DaCe's auto_optimize and the function of the same name in unseen_numba.py are verified and timed in
    turn, in one run, which takes about twenty minutes. Numba is an optional extra: pip install
    'gnnperf[numba]'.
    """
    return ComparisonStudy.report("unseen-numba", SUITE, **options)
