"""`gnnperf eval`: one benchmark, one table. Benchmark `x-y` is command `x_y` of `gnnperf/cli/eval/x_y.py`."""

from __future__ import annotations

import click

from gnnperf.cli.lazy import LazyGroup

__all__ = ["BENCHMARKS", "eval"]

BENCHMARKS: tuple[str, ...] = (
    "transfer",
    "search",
    "gpu-operators",
    "gpu-models",
    "gpu-schedules",
    "case-spmm",
    "case-stencils",
    "case-dnn",
    "case-linalg",
    "tensor-ranking",
    "tensor-transfer",
    "torch-models",
    "cross-frontend",
    "cost-model",
    "export",
)
"""In the order of `gnnperf eval --help`."""


@click.group("eval", cls=LazyGroup, package="gnnperf.cli.eval", names=BENCHMARKS)
def eval() -> None:
    """Reproduce one table: every number in the README comes from one of these.

    With --json each prints {"benchmark", "figures", "rows", "settings"}: the headline numbers by name, the
    whole table behind them, and what it was measured with.
    """
