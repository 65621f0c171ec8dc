"""`gnnperf eval torch-models`."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.measured import measure_rows, row_log, with_failure
from gnnperf.cli.eval.table import benchmark_report, ratio, write_document
from gnnperf.cli.eval.tensor_options import output_option, ready_to_measure, tensor_checkpoint_option
from gnnperf.cli.output import Report, Verb

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult


@click.command("torch-models", cls=Verb, page=True)
@tensor_checkpoint_option("--checkpoint", "Cost model and schedule store.")
@click.option(
    "-k", default=8, show_default=True, type=click.IntRange(1, 100), help="Candidates measured per task."
)
@click.option(
    "--trials", default=64, show_default=True, type=click.IntRange(16, 100_000),
    help="Of MetaSchedule, per task.",
)  # fmt: skip
@click.option("--only", metavar="TEXT", help="Only networks whose names contain TEXT, as `mlp`.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of weights and searches.")
@output_option
def torch_models(
    checkpoint: Path, k: int, trials: int, only: str | None, seed: int, output: Path | None
) -> Report:
    """Whole torch models tuned by transfer, beside MetaSchedule, TVM untuned and torch eager.

    A block of a ResNet, a block of a transformer and a perceptron are exported, split into tasks and tuned,
    by `gnnperf retrieve` and by MetaSchedule's own search. The programs are verified against PyTorch and
    timed in turn from end to end, PyTorch among them, on as many threads. Ratios are latencies of the others
    over ours, the least over the networks; neither keeps a schedule slower than the unscheduled function.
    """
    names = chosen_networks(only)
    target = ready_to_measure(output)
    with ExitStack() as stack:
        from gnnperf.evaluation.tensor import describe_setup
        from gnnperf.evaluation.tensor.networks import export_network
        from gnnperf.evaluation.tensor.torch_models import Network, TorchModels, summarise_torch_models

        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gnnperf-networks-")))
        networks = [Network.load(export_network(name, folder, seed), target) for name in names]
        # Forked before the store is loaded, and before torch has threads.
        servers = [stack.enter_context(network.server()) for network in networks]
        study = TorchModels.load(networks, servers, checkpoint, k=k, trials=trials, seed=seed)
        settings = {**describe_setup(), "checkpoint": checkpoint, "k": k, "trials": trials, "seed": seed}
        work = {name: partial(study.row, number) for number, name in enumerate(names)}
        rows = measure_rows("torch-models", work, row_log(output, settings))
    result = summarise_torch_models(rows, settings)
    write_document(result, output)
    return with_failure(_report(result), len(names), output)


def chosen_networks(only: str | None) -> list[str]:
    """Names that contain `only`. InputError: none."""
    from gnnperf.errors import InputError
    from gnnperf.evaluation.tensor.networks import NETWORKS

    found = [name for name in NETWORKS if (only or "") in name]
    if not found:
        raise InputError(f"--only: expected part of {', '.join(NETWORKS)}, got {only!r}")
    return found


def _report(result: BenchmarkResult) -> Report:
    return benchmark_report(result, [_shown(row) for row in result.rows])


def _shown(row: Any) -> dict[str, Any]:
    """A row short enough for a terminal."""
    untuned = [row[name] for name in ("relax_s", "fused_s") if row.get(name)]
    ours = row.get("ours_s")
    return {
        "network": row["network"],
        "tasks": row.get("tasks"),
        "ours us": ours and 1e6 * ours,
        "vs untuned": min(untuned) / ours if untuned and ours else None,
        "vs ms": ratio(row, "ms_s", "ours_s"),
        "vs torch": ratio(row, "torch_s", "ours_s"),
        "tuning s": row.get("ours_tuning_s"),
        "ms tuning s": row.get("ms_tuning_s"),
        "note": "; ".join(row["failures"]),
    }
