"""`gnnperf eval`: one benchmark, one table. Benchmark `x-y` is command `x_y` of `gnnperf/cli/eval/x_y.py`."""

from __future__ import annotations

import click

from gnnperf.cli.lazy import LazyGroup
from gnnperf.shipped import shipped

__all__ = ["BENCHMARKS", "eval"]

BENCHMARKS: tuple[str, ...] = (
    "transfer",
    "ablation",
    "search",
    "tensor-ranking",
    "gpu-operators",
    "gpu-models",
    "gpu-schedules",
)
"""In the order of `gnnperf eval --help`."""


class _Benchmarks(LazyGroup):
    """Of a name that only a checkout has, it says how to run it."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        script = shipped("scripts/benchmarks") / f"{cmd_name.replace('-', '_')}.py"
        if cmd_name not in self.names and script.is_file():
            command = f"python scripts/benchmarks/run.py {cmd_name}"
            raise click.UsageError(f"No such command '{cmd_name}'; this is a checkout: {command}", ctx)
        return super().get_command(ctx, cmd_name)


@click.group("eval", cls=_Benchmarks, package="gnnperf.cli.eval", names=BENCHMARKS)
def eval() -> None:
    """Judge models by one table: what they make of what they have not learned from.

    With --json each prints {"benchmark", "figures", "rows", "settings"}: the headline numbers by name, the
    whole table behind them, and what it was measured with. Tables that compare with other tools are made in a
    checkout: python scripts/benchmarks/run.py --list.
    """
