"""Options that several benchmarks share, and how those begin that measure TVM schedules.

Nothing here imports torch: processes that measure are forked before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gnnperf.cli.options import FILE, FOLDER
from gnnperf.errors import InputError
from gnnperf.shipped import shipped_tensor_bundle

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.workloads import TvmWorkload

F = TypeVar("F", bound=Callable[..., Any])

REPO = Path(__file__).parents[2]
CONFIG = REPO / "configs" / "corpus" / "tensor.yaml"


def with_scripts() -> dict[str, str]:
    """The environment, in which other processes find this package."""
    paths = [str(REPO / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


_config = click.option(
    "--config", "-c", type=FILE, metavar="FILE",
    default=CONFIG, show_default="configs/corpus/tensor.yaml",
    help="Whose workloads marked `split: held_out` are tuned.",
)  # fmt: skip

_only = click.option("--only", metavar="TEXT", help="Only workloads whose names contain TEXT, as `conv2d-`.")

_skip = click.option(
    "--skip", metavar="TEXT", multiple=True,
    help="No workloads whose names contain TEXT, as `transpose`. May be given several times.",
)  # fmt: skip


def workload_options(count: int | None = None) -> Callable[[F], F]:
    """`--config`, `--only`, `--skip`, `--workloads`, as `config: Path`, `only: str | None`,
    `skip: tuple[str, ...]`, `count: int | None`, for `held_out_workloads`. count: the default of the last;
    None: all."""
    first = click.option(
        "--workloads", "count", metavar="N", type=click.IntRange(1), default=count,
        show_default=str(count or "all"), help="The first N of them, in turn of all kinds.",
    )  # fmt: skip
    return lambda command: _config(_only(_skip(first(command))))


def listed(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Of an option: "a,b"."""
    return tuple(filter(None, (name.strip() for name in (value or "").split(","))))


def chosen(known: Iterable[str], wanted: Sequence[str], option: str = "--kernels") -> list[str]:
    """The known names that are wanted, or all, in the order of the known ones. Raises InputError."""
    names = list(known)
    if unknown := [name for name in wanted if name not in names]:
        raise InputError(f"{option}: expected some of {', '.join(names)}, got {unknown[0]!r}")
    return [name for name in names if not wanted or name in wanted]


kernels_option = click.option(
    "--kernels", metavar="NAME,...", callback=listed, help="These kernels only.  [default: all]"
)


def tensor_checkpoint_option(name: str, text: str) -> Callable[[F], F]:
    """The option of that name: a bundle for TVM programs. text: what of it is used."""
    return click.option(
        name, type=FOLDER, metavar="DIR",
        default=shipped_tensor_bundle, show_default="the released one", help=text,
    )  # fmt: skip


def ready_to_measure() -> Any:
    """The TVM target of this machine, in a process that may now fork a `BenchServer`."""
    from gnnperf.corpus.traces import prepare
    from gnnperf.frontends.tvm.target import host_target, set_runtime_threads

    set_runtime_threads()
    prepare()
    return host_target()


def held_out_workloads(config: Path, only: str | None, skip: Sequence[str]) -> list[TvmWorkload]:
    """Those marked `split: held_out` whose names contain `only` and nothing of `skip`, in turn of all kinds.
    InputError: none."""
    from gnnperf.frontends.tvm.workloads import read_workloads

    held_out = [w for w in read_workloads(config)[1] if w.split == "held_out" and (only or "") in w.name]
    held_out = [w for w in held_out if not any(text in w.name for text in skip)]
    if not held_out:
        chosen = [f"--only {only!r}"] if only else []
        asked = " ".join([str(config), *chosen, *(f"--skip {text!r}" for text in skip)])
        raise InputError(f"expected workloads marked `split: held_out`, got none in {asked}")
    return scattered(held_out)


def scattered(workloads: list[TvmWorkload]) -> list[TvmWorkload]:
    """One of every kind, then the next of every kind: the beginning of the list stands for the whole."""
    seen: dict[str, int] = {}
    turns = []
    for workload in workloads:
        turns.append(seen.get(workload.kind, 0))
        seen[workload.kind] = turns[-1] + 1
    return [workload for _, workload in sorted(zip(turns, workloads, strict=True), key=lambda pair: pair[0])]
