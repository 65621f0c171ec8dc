"""`python scripts/benchmarks/run.py NAME ...`: one benchmark, one table."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import click

from gnnperf.cli.lazy import LazyGroup
from gnnperf.cli.main import main

NAMES = (
    "case-dnn",
    "case-linalg",
    "case-stencils",
    "case-sweeps",
    "case-spmm",
    "unseen-kernels",
    "tensor-transfer",
    "torch-models",
    "operator-matrix",
    "cost-model",
    "products",
    "library-calls",
    "export",
    "pipeline-figures",
    "faults",
    "store-load",
)
"""In the order of --help. Benchmark `x-y` is command `x_y` of `x_y.py`."""


def summary(name: str) -> str:
    """What a benchmark shows: the first line of its file, which is not imported for it."""
    text = Path(__file__).with_name(f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


class _Benchmarks(LazyGroup):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Benchmarks"):
            formatter.write_dl([(name, summary(name)) for name in self.names])


def _list(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo("\n".join(NAMES))
        ctx.exit()


@click.group(
    "python scripts/benchmarks/run.py",
    cls=_Benchmarks,
    package="benchmarks",
    names=NAMES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="Print the names."
)
def benchmarks() -> None:
    """Reproduce one table: every number of docs/benchmarks comes from one of these.

    With --json each prints {"benchmark", "figures", "rows", "settings"}: the headline numbers by name, the
    whole table behind them, and what it was measured with. Figures are of the machine that runs them; nothing
    else may run on it meanwhile. Exit codes: 0 done, 1 something was wrong, 2 bad input.
    """


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # in place of this folder, whose names are common
    main(benchmarks)
