"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gnnperf.shipped import shipped, shipped_bundle

F = TypeVar("F", bound=Callable[..., Any])


def _symbols(ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, float]:
    """`("N=512", "alpha=1.5")` as `{"N": 512, "alpha": 1.5}`."""
    symbols: dict[str, float] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            if not name.isidentifier():
                raise ValueError
            symbols[name] = int(value) if value.lstrip("+-").isdecimal() else float(value)
            if not abs(symbols[name]) < 2**63:  # nor NaN
                raise ValueError
        except ValueError:
            raise click.BadParameter(f"expected NAME=NUMBER, such as N=512, got {pair!r}.") from None
    return symbols


def kernel_options(command: F) -> F:
    """`--set`, `--inputs`, `--seed`, as `symbols: dict[str, float]`, `inputs: str | None`, `seed: int`."""
    for option in (
        click.option(
            "--seed",
            default=0,
            show_default=True,
            type=click.IntRange(0),
            help="Seed of the generated inputs.",
        ),
        click.option(
            "--inputs",
            metavar="FILE.py:FUNCTION",
            help="A function that returns the kernel's inputs: a dict of arrays and scalars. "
            "By default they are generated from the signature.",
        ),
        click.option(
            "--set",
            "symbols",
            metavar="NAME=NUMBER",
            multiple=True,
            callback=_symbols,
            help="Value of a symbol or scalar argument of the kernel; once for each.",
        ),
    ):
        command = option(command)
    return command


def released_runtime_head() -> Path:
    """The runtime head for GPUs that comes with gnnperf."""
    return shipped("checkpoints/gpu-runtime")


def released_corpus() -> Path:
    """The corpus that comes with gnnperf, which the released bundle was trained on."""
    return shipped("checkpoints/corpus/first")


def released_trials() -> Path:
    """Long searches of some nests of that corpus."""
    return shipped("checkpoints/corpus/random_search")


checkpoint_option = click.option(
    "--checkpoint",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=shipped_bundle,
    show_default="the released one",
    metavar="DIR",
    help="A bundle: weights, metadata and schedule store.",
)
