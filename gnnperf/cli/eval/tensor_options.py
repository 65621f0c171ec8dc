"""What benchmarks that measure TVM schedules have in common: options, workloads, and how they begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gnnperf.shipped import shipped, shipped_tensor_bundle

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.workloads import Workload

F = TypeVar("F", bound=Callable[..., Any])

config_option = click.option(
    "--config", "-c", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
    default=lambda: shipped("configs/corpus/tensor.yaml"), show_default="configs/corpus/tensor.yaml",
    help="Whose workloads marked `split: held_out` are tuned.",
)  # fmt: skip

corpus_option = click.option(
    "--corpus", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    default=lambda: shipped("checkpoints/corpus/tensor"), show_default="the corpus that comes with gnnperf",
    help="Folder that scripts/collect_tensor.py wrote.",
)  # fmt: skip

cache_option = click.option(
    "--cache", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Where features of schedules are kept for the next time.  [default: ~/.cache/gnnperf/tensor]",
)  # fmt: skip

only_option = click.option(
    "--only", metavar="TEXT", help="Only workloads whose names contain TEXT, as `conv2d-`."
)

skip_option = click.option(
    "--skip", metavar="TEXT", multiple=True,
    help="No workloads whose names contain TEXT, as `transpose`. May be given several times.",
)  # fmt: skip

output_option = click.option(
    "--output", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Write the document of --json. Rows that are there already are not measured again.",
)  # fmt: skip


def tensor_checkpoint_option(name: str, text: str) -> Callable[[F], F]:
    """The option of that name: a bundle for TVM programs. text: what of it is used."""
    return click.option(
        name, type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIR",
        default=shipped_tensor_bundle, show_default="the released one", help=text,
    )  # fmt: skip


def ready_to_measure(output: Path | None) -> Any:
    """The TVM target of this machine, in a process that may now fork a `BenchServer`. InputError: the folder
    cannot be written."""
    from gnnperf.corpus.collect_traces import prepare
    from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
    from gnnperf.retrieval.folder import check_output

    if output is not None:
        check_output(output)
    set_runtime_threads()
    prepare()
    return host_target()


def held_out_workloads(config: Path, only: str | None, skip: Sequence[str]) -> list[Workload]:
    """Those marked `split: held_out` whose names contain `only` and nothing of `skip`, in turn of all kinds.
    InputError: none."""
    from gnnperf.errors import InputError
    from gnnperf.frontends.tvm.workloads import read_workloads

    held_out = [w for w in read_workloads(config)[1] if w.split == "held_out" and (only or "") in w.name]
    held_out = [w for w in held_out if not any(text in w.name for text in skip)]
    if not held_out:
        chosen = [f"--only {only!r}"] if only else []
        asked = " ".join([str(config), *chosen, *(f"--skip {text!r}" for text in skip)])
        raise InputError(f"expected workloads marked `split: held_out`, got none in {asked}")
    return scattered(held_out)


def scattered(workloads: list[Workload]) -> list[Workload]:
    """One of every kind, then the next of every kind: the beginning of the list stands for the whole."""
    seen: dict[str, int] = {}
    turns = []
    for workload in workloads:
        turns.append(seen.get(workload.kind, 0))
        seen[workload.kind] = turns[-1] + 1
    return [workload for _, workload in sorted(zip(turns, workloads, strict=True), key=lambda pair: pair[0])]
