"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gnnperf.errors import InputError, StoreError
from gnnperf.shipped import shipped, shipped_bundle

if TYPE_CHECKING:
    from gnnperf.nn import Bundle
    from gnnperf.store import Store

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


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not value > 0:  # nor NaN
        raise click.BadParameter(f"expected a number of seconds above 0, got {value:g}.")
    return value


def measuring_options(command: F) -> F:
    """`--baseline`, `--budget`, `--output`, `--store`, `--no-store`, `--beside`, as `baseline: str`,
    `budget: float | None`, `output: Path | None`, `store_location: str | None`, `no_store: bool`,
    `beside: str | None`."""
    for option in (
        click.option(
            "--beside", type=click.Choice(["torch"]),
            help="Time this library's implementation in turn with the result, on as many threads, where it "
            "has one. For TVM kernels.",
        ),
        click.option("--no-store", is_flag=True, help="Use the released store only and remember nothing."),
        click.option(
            "--store", "store_location", metavar="DIR|URI",
            help="Your schedule store: searched beside the released one, and what is measured is added to it."
            "  [default: $GNNPERF_STORE, else in the user's data folder]",
        ),
        click.option(
            "--output", "-o", type=click.Path(path_type=Path), metavar="DIR",
            help="Write the tuned SDFG (or TVMScript and traces), a compiled library, a script that runs it, "
            "and the report.",
        ),
        click.option(
            "--budget", metavar="SECONDS", type=float, callback=_seconds,
            help="Wall time for measuring candidates; what is left then is not tried.",
        ),
        click.option(
            "--baseline", type=click.Choice(["auto", "simplify"]), default="auto", show_default=True,
            help="What to beat: DaCe's auto_optimize, or the plain program. Of a TVM kernel it is what TVM's "
            "default pipeline makes of it.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def own_store(location: str | None, no_store: bool, bundle: Bundle) -> Store | None:
    """The store that `store_options` name. Raises InputError, StoreError."""
    from gnnperf.retrieval.stores import open_own

    if location and no_store:
        raise InputError("--store and --no-store exclude one another; give one of them")
    if no_store:
        return None
    try:
        return open_own(location, bundle, lambda text: click.echo(f"gnnperf: {text}", err=True))
    except StoreError as error:
        raise StoreError(f"{error}; or name another with --store, or give --no-store") from error


def is_default(ctx: click.Context, name: str) -> bool:
    """Whether an option was not given."""
    return ctx.get_parameter_source(name) is click.core.ParameterSource.DEFAULT


def refuse(ctx: click.Context, kernel: str, *names: str) -> None:
    """InputError where an option was given that means nothing for such a kernel."""
    given = next((name for name in names if not is_default(ctx, name)), None)
    if given is not None:
        raise InputError(f"--{given}: {kernel} takes none: expected no such option; leave it out")
