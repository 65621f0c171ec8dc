"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gnnperf.errors import InputError
from gnnperf.shipped import shipped, shipped_bundle

if TYPE_CHECKING:
    from gnnperf.session import Session

F = TypeVar("F", bound=Callable[..., Any])

ANY_PATH = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)
ANY_FOLDER = click.Path(path_type=Path, file_okay=False)


def _sizes(ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, float]:
    """`("N=512", "alpha=1.5")` as `{"N": 512, "alpha": 1.5}`."""
    sizes: dict[str, float] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name in sizes:
            raise click.BadParameter(f"expected one value for {name}, got another: {pair!r}.")
        try:
            if not name.isidentifier():
                raise ValueError
            sizes[name] = int(value) if value.lstrip("+-").isdecimal() else float(value)
            if not abs(sizes[name]) < 2**63:  # nor NaN
                raise ValueError
        except ValueError:
            raise click.BadParameter(f"expected NAME=NUMBER, such as N=512, got {pair!r}.") from None
    return sizes


sizes_option = click.option(
    "--set",
    "sizes",
    metavar="NAME=NUMBER",
    multiple=True,
    callback=_sizes,
    help="Value of a symbol or scalar argument of the kernel; once for each.",
)


def _checkpoint(**default: Any) -> Callable[[F], F]:
    return click.option(
        "--checkpoint",
        type=FOLDER,
        show_default="the released one",
        metavar="DIR",
        help="A checkpoint: weights, metadata and schedule store.",
        **default,
    )


checkpoint_option = _checkpoint()
"""As `checkpoint: Path | None`, of whichever model the verb needs."""
nests_checkpoint_option = _checkpoint(default=shipped_bundle)
"""As `checkpoint: Path`, of the model for loop nests."""


def kernel_options(command: F) -> F:
    """`--set`, `--inputs`, `--seed`, `--checkpoint`, as `sizes: dict[str, float]`, `inputs: str | None`,
    `seed: int | None`, `checkpoint: Path | None`."""
    for option in (
        checkpoint_option,
        click.option("--seed", type=click.IntRange(0), help="Seed of the generated inputs.  [default: 0]"),
        click.option(
            "--inputs",
            metavar="FILE.py:FUNCTION",
            help="A function that returns the kernel's inputs: a dict of arrays and scalars. "
            "By default they are generated from the signature.",
        ),
        sizes_option,
    ):
        command = option(command)
    return command


def data_option(file: str, default: str = "$GNNPERF_DATA") -> Callable[[F], F]:
    """`--data`, as `data: Path | None`: where measurements on GPUs are; see `tables.data_path`."""
    return click.option(
        "--data", type=ANY_PATH, metavar="PATH", help=f"{file}, or the folder with it.  [default: {default}]"
    )


def data_folder_option(files: str) -> Callable[[F], F]:
    """`--data`, as `data: Path`: the folder with several files of measurements on GPUs."""
    return click.option(
        "--data", type=ANY_FOLDER, envvar="GNNPERF_DATA", required=True, metavar="DIR",
        help=f"Folder with {files}; by default $GNNPERF_DATA.",
    )  # fmt: skip


def output_folder(help: str, *, required: bool = True, metavar: str = "DIR", **more: Any) -> Callable[[F], F]:
    """`--output`, as `output: Path`, or `Path | None` where it is not required: a folder to write. more: of
    `click.option`."""
    return click.option(
        "--output", "-o", type=ANY_FOLDER, required=required, metavar=metavar, help=help, **more
    )


def _writable(ctx: click.Context, param: click.Parameter, folder: Path | None) -> Path | None:
    from gnnperf.backends.folder import check_output

    if folder is not None:
        check_output(folder)
    return folder


def results_folder(help: str) -> Callable[[F], F]:
    """`--output`, as `output: Path | None`: a folder, which is refused before any work where it cannot be
    written."""
    return output_folder(help, required=False, callback=_writable)


plots_option = results_folder("Write the plots (PNG and SVG) and the document of --json.")
quick_option = click.option("--quick", is_flag=True, help="Train briefly: a first look.")


LEARNED_FROM = tuple("first random small composed steps flows chains lanes in_place windows discrete".split())
"""The released corpora of nests that models learn from."""


def _learned_from() -> tuple[Path, ...]:
    return tuple(shipped("checkpoints/corpus") / name for name in LEARNED_FROM)


corpora_option = click.option(
    "--corpus", "corpora", type=ANY_FOLDER, multiple=True, default=_learned_from, metavar="DIR",
    show_default="those that come with gnnperf",
    help="Folder of measured nests that `gnnperf collect` wrote; may be repeated.",
)  # fmt: skip


def released_trials() -> Path:
    """Long searches of some nests of these."""
    return shipped("checkpoints/corpus/random_search")


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not value > 0:  # nor NaN
        raise click.BadParameter(f"expected a number of seconds above 0, got {value:g}.")
    return value


def measuring_options(command: F) -> F:
    """`--baseline`, `--budget`, `--output`, `--store`, `--no-store`, `--beside`, `--weights`, as `baseline:
    str | None`, `budget_s: float | None`, `output: Path | None`, `store_location: str | None`, `no_store:
    bool`, `competitors: tuple[str, ...]`, `weights: str | None`."""
    for option in (
        click.option(
            "--weights", type=click.Choice(["varying", "constant"]),
            help="Of a TVM function that leaves the layout of weights free: varying (default): packing them "
            "is a part of the function; constant: they are packed once, which is not counted.",
        ),
        click.option(
            "--beside", "competitors", metavar="NAME", multiple=True,
            help="Time this in turn with the result, on as many threads; may be repeated. Of a DaCe program: "
            "numpy, numba, torch, torch-compile (its Python function, run by these), or your own "
            "file.py:function with arguments of the same names. Of a TVM kernel: torch's operator. Of a "
            "torch program, which is always timed beside PyTorch: torch-compile.",
        ),
        click.option("--no-store", is_flag=True, help="Use the released store only and remember nothing."),
        click.option(
            "--store", "store_location", metavar="DIR|URI",
            help="Your schedule store: searched beside the released one, and what is measured is added to it."
            "  [default: $GNNPERF_STORE, else in the user's data folder]",
        ),
        click.option(
            "--output", "-o", type=ANY_PATH, metavar="DIR",
            help="Write the tuned SDFG (or TVMScript and traces), a compiled library, a script that runs it, "
            "and the report.",
        ),
        click.option(
            "--budget", "budget_s", metavar="SECONDS", type=float, callback=_seconds,
            help="Wall time for measuring candidates; what is left then is not tried.",
        ),
        click.option(
            "--baseline", metavar="NAME",
            help="What to beat. Of a DaCe kernel: auto (auto_optimize, the default), or simplify, the plain "
            "program. Of a TVM kernel it is what TVM's default pipeline makes of it.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def open_session(checkpoint: Path | None, location: str | None, no_store: bool) -> Session:
    """The session that options ask for. Raises InputError."""
    from gnnperf.session import Session

    if location and no_store:
        raise InputError("--store and --no-store exclude one another; give one of them")
    return Session(checkpoint, False if no_store else location, notify)


def notify(text: str) -> None:
    """Say something while the work goes on."""
    click.echo(f"gnnperf: {text}", err=True)


def refuse(ctx: click.Context, what: str, *names: str) -> None:
    """InputError where an option was given that means nothing for such a thing. names: of its parameters."""
    options = {parameter.name: parameter.opts[0] for parameter in ctx.command.params}
    for name in names:
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise InputError(f"{options[name]}: {what} takes none: expected no such option; leave it out")
