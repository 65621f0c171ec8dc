"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class _SymbolValue(click.ParamType):
    """`NAME=INTEGER`, the value of one symbol."""

    name = "NAME=INTEGER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        name, _, number = str(value).partition("=")
        try:
            if name.isidentifier():
                return name, int(number)
        except ValueError:
            pass
        self.fail(f"expected NAME=INTEGER, such as N=512, got {value!r}.", param, ctx)


def _symbols(ctx: click.Context, param: click.Parameter, pairs: tuple[tuple[str, int], ...]) -> dict[str, int]:
    return dict(pairs)


def kernel_options(command: F) -> F:
    """`--set`, `--inputs` and `--seed`: passed as `symbols: dict[str, int]`, `inputs: str | None`, `seed: int`."""
    for option in (
        click.option("--seed", default=0, show_default=True, help="Seed of the generated inputs."),
        click.option(
            "--inputs",
            metavar="FILE.py:FUNCTION",
            help="A function that returns the kernel's inputs: a dict of arrays and scalars. "
            "By default they are generated from the signature.",
        ),
        click.option(
            "--set",
            "symbols",
            type=_SymbolValue(),
            multiple=True,
            callback=_symbols,
            help="Value of a symbol of the kernel; once for each.",
        ),
    ):
        command = option(command)
    return command


checkpoint_option = click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="A bundle: weights, metadata and schedule store.  [default: the released one]",
)
