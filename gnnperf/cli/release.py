"""`gnnperf train release MODEL`: the released models, made from measurements by one command each."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.table import rows_table
from gnnperf.cli.eval.trace_options import cache_option
from gnnperf.cli.options import FILE, FOLDER, corpora_option, data_option, output_folder, quick_option
from gnnperf.cli.output import Report, Verb, going_on, progress
from gnnperf.shipped import shipped, shipped_bundle

if TYPE_CHECKING:
    from gnnperf.evaluation.release import Progress, Trained

checkpoint_to_write = output_folder(
    "The checkpoint to write: a new folder, or a checkpoint, which is replaced but for its card."
)
seed_option = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="Of all draws."
)
seeds_option = click.option(
    "--seeds", default=1, show_default=True, type=click.IntRange(1), help="Trainings to average."
)
anyway_option = click.option("--anyway", is_flag=True, help="Write it even if the network does not help.")
workers_option = click.option(
    "--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes, of one thread each."
)


@click.group()
def release() -> None:
    """Make a checkpoint as it is released: trained on all there is, with the figures of what was held out."""


@release.command(cls=Verb)
@corpora_option
@checkpoint_to_write
@anyway_option
@seed_option
@workers_option
@quick_option
def loop_nests(
    corpora: tuple[Path, ...], output: Path, anyway: bool, seed: int, workers: int, quick: bool
) -> Report:
    """Encoder, head, schedule store and confidence, for loop nests of three families or more.

    Every family is held out in turn, in folds: that gives the figures, and how sure retrieval may be of what
    it measures. What is no better than the same without its network is not written. Then one training on all
    families gives what is released. Two hours and a half on two cores; interrupted, the same command goes on
    with the next fold.
    """
    from gnnperf.evaluation.release.loop_nests import train_loop_nests

    unfinished = output.with_name(f"{output.name}.unfinished")
    with going_on(lambda: f"what the folds gave is in {unfinished}"):
        train = partial(train_loop_nests, corpora, seed, workers, anyway, quick, unfinished)
        report = _release(train, output)
    shutil.rmtree(unfinished)
    return report


@release.command(cls=Verb)
@click.option(
    "--corpus", type=FOLDER, metavar="DIR", default=lambda: shipped("checkpoints/corpus/tensor"),
    show_default="the corpus that comes with gnnperf", help="Of measured schedules of TVM workloads.",
)  # fmt: skip
@checkpoint_to_write
@click.option(
    "--evaluation", type=FILE, metavar="JSON",
    help="What gnnperf eval tensor-ranking --json printed: its figures for operator kinds that were held out "
    "go into the metadata.",
)  # fmt: skip
@click.option(
    "--encoder", type=FOLDER, metavar="DIR", default=shipped_bundle, show_default="the released one",
    help="Checkpoint of loop-nests that embeds the workloads of the store.",
)  # fmt: skip
@cache_option
@anyway_option
@seed_option
@seeds_option
@quick_option
def tensor_programs(
    corpus: Path, output: Path, evaluation: Path | None, encoder: Path, cache: Path | None,
    anyway: bool, seed: int, seeds: int, quick: bool,
) -> Report:  # fmt: skip
    """Cost model of scheduled tensor programs, with a store of traces, for TVM.

    Workloads that are marked held out are in neither; the figures say how the model ranks their schedules.
    What picks no better for them than the same without its network is not written.
    """
    import warnings

    from gnnperf.evaluation.release.tensor_programs import train_tensor_programs
    from gnnperf.nn import Bundle, load_checkpoint
    from gnnperf.training.traces.features import default_cache
    from gnnperf.training.traces.fit import DEFAULT_FIT, QUICK_FIT

    warnings.simplefilter("ignore")
    bundle = load_checkpoint(encoder, Bundle)
    settings = QUICK_FIT if quick else DEFAULT_FIT
    train = partial(
        train_tensor_programs, corpus, bundle, evaluation, range(seed, seed + seeds), settings,
        cache or default_cache(), anyway,
    )  # fmt: skip
    return _release(train, output)


@release.command(cls=Verb)
@data_option("gpu_operators.parquet")
@checkpoint_to_write
@click.option(
    "--config", "-c", type=FILE, metavar="FILE",
    default=lambda: shipped("configs/models") / "gpu_runtime.yaml",
    show_default="configs/models/gpu_runtime.yaml", help="Seeds, splits to fit on, what is left out, steps.",
)  # fmt: skip
@workers_option
def gpu_runtime(data: Path | None, output: Path, config: Path, workers: int) -> Report:
    """Runtimes of operators on GPUs that nobody measured. Some ten minutes on two cores."""
    from gnnperf.evaluation.release.gpu_runtime import FILE, RuntimeConfig, train_gpu_runtime
    from gnnperf.frontends.gpu_kernels.tables import data_path

    return _release(
        partial(train_gpu_runtime, data_path(data, FILE), RuntimeConfig.read(config), workers), output
    )


@release.command(cls=Verb)
@data_option("tunable_kernels.parquet")
@checkpoint_to_write
@click.option(
    "--evaluation", type=FILE, metavar="JSON",
    help="What gnnperf eval gpu-schedules --json printed; without it, the evaluation is done first.",
)  # fmt: skip
@seed_option
@seeds_option
@quick_option
def tunable_kernels(
    data: Path | None, output: Path, evaluation: Path | None, seed: int, seeds: int, quick: bool
) -> Report:
    """Configurations of tunable kernels for GPUs that nobody measured them on.

    Intervals and figures come from the evaluation, where what was predicted had been held out.
    """
    from gnnperf.evaluation.release.tunable_kernels import train_tunable_kernels
    from gnnperf.frontends.gpu_kernels.tables import data_path
    from gnnperf.training.demand import DemandFitSettings

    settings = DemandFitSettings(steps=60) if quick else DemandFitSettings()
    seeds_ = range(seed, seed + seeds)
    return _release(partial(train_tunable_kernels, data_path(data), evaluation, seeds_, settings), output)


def _release(train: Callable[[Progress], Trained], output: Path) -> Report:
    from rich.console import Group
    from rich.text import Text

    from gnnperf.evaluation.release import release as make

    trained = make(train, output, progress)
    about = trained.model.contents().provenance
    document: dict[str, Any] = {
        "model": trained.model.MODEL, "checkpoint": output, "figures": about.figures, "rows": trained.rows,
        "corpus": about.corpus, "seeds": list(about.seeds),
    }  # fmt: skip
    lines = [f"{name}: {value:.3f}" for name, value in about.figures.items()]
    words = Text("\n".join([*lines, f"{output}: checkpoint of {trained.model.MODEL}"]))
    return Report(document, Group(rows_table(trained.rows), "", words) if trained.rows else words)
