"""`gnnperf eval tensor-transfer`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.measured import measure_rows, row_log, with_failure
from gnnperf.cli.eval.table import benchmark_report, ratio, write_document
from gnnperf.cli.eval.tensor_options import (
    cache_option,
    config_option,
    corpus_option,
    held_out_workloads,
    only_option,
    output_option,
    ready_to_measure,
    skip_option,
    tensor_checkpoint_option,
)
from gnnperf.cli.output import Report, Verb

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult


@click.command("tensor-transfer", cls=Verb, page=True)
@config_option
@tensor_checkpoint_option("--checkpoint", "Cost model and schedule store.")
@click.option(
    "--trials", default=128, show_default=True, type=click.IntRange(16, 100_000),
    help="Of MetaSchedule; from 1000 on, its first 128 and all of them are compared.",
)  # fmt: skip
@click.option(
    "--workloads", "count", metavar="N", type=click.IntRange(1),
    help="The first N of them, in turn of all kinds.  [default: all]",
)  # fmt: skip
@only_option
@skip_option
@click.option(
    "--held-out-kinds", is_flag=True,
    help="Also transfer from workloads of other kinds only, by cost models trained without the kind (minutes "
    "each; `-o DIR` keeps them).",
)  # fmt: skip
@corpus_option
@cache_option
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of MetaSchedule.")
@output_option
def tensor_transfer(
    config: Path, checkpoint: Path, trials: int, count: int | None, only: str | None, skip: tuple[str, ...],
    held_out_kinds: bool, corpus: Path, cache: Path | None, seed: int, output: Path | None,
) -> Report:  # fmt: skip
    """Held-out TVM workloads tuned by transfer, beside MetaSchedule's own search.

    Ratios are latency of MetaSchedule after 128 trials over ours, higher is better, geometric means: with 8
    and with 1 measured candidates, with the first of the ranking unmeasured, and of the floor: one trace of
    the nearest workload of the kind with its tiles decided anew, the best of 8. What fails counts as the
    unscheduled function. All contenders of a workload, PyTorch among them, are verified and timed in turn.
    """
    from gnnperf.backends.tvm.server import BenchServer

    chosen = held_out_workloads(config, only, skip)[:count]
    target = ready_to_measure(output)
    # Forked before torch and the store are loaded.
    with BenchServer([workload.build() for workload in chosen], target) as server:
        from gnnperf.evaluation.tensor import ModelsWithoutKinds, Study, describe_setup, summarise

        without = ModelsWithoutKinds.of(corpus, cache, output) if held_out_kinds else None
        study = Study.load(
            chosen, server, target, checkpoint, trials=trials, without_kinds=without, seed=seed
        )
        settings = {
            **describe_setup(), "checkpoint": checkpoint, "trials": trials, "seed": seed,
            "held_out_kinds": without and without.corpus.digest,
        }  # fmt: skip
        work = {w.name: partial(study.row, n) for n, w in enumerate(chosen)}
        rows = measure_rows("tensor-transfer", work, row_log(output, settings))
    result = summarise(rows, settings)
    write_document(result, output)
    return with_failure(_report(result), len(chosen), output)


def _report(result: BenchmarkResult) -> Report:
    return benchmark_report(result, [_shown(row) for row in result.rows])


def _shown(row: Any) -> dict[str, Any]:
    """A row short enough for a terminal."""
    ours = row.get("ours_8_s")
    return {
        "workload": row["workload"],
        "ours us": ours and 1e6 * ours,
        "at 8": ratio(row, "ms_s", "ours_8_s"),
        "at 1": ratio(row, "ms_s", "ours_1_s"),
        "model only": ratio(row, "ms_s", "model_only_s"),
        "floor": ratio(row, "ms_s", "floor_8_s"),
        "long": ratio(row, "ms_long_s", "ours_8_s"),
        "other kinds": ratio(row, "ms_s", "kind_8_s"),
        "vs torch": ratio(row, "torch_s", "ours_8_s"),
        "trials to match": row.get("trials_to_match_8"),
        "note": "; ".join(filter(None, [row.get("note", ""), *row["failures"]])),
    }
