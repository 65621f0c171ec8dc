"""`gnnperf eval tensor-transfer`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.measured import Say, measure_rows, with_failure
from gnnperf.cli.eval.table import benchmark_report
from gnnperf.cli.output import Report, Verb, to_json
from gnnperf.shipped import shipped, shipped_tensor_bundle

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult
    from gnnperf.frontends.tvm.workloads import Workload


@click.command("tensor-transfer", cls=Verb, page=True)
@click.option(
    "--config", "-c", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
    default=lambda: shipped("configs/corpus/tensor.yaml"), show_default="configs/corpus/tensor.yaml",
    help="Whose workloads marked `split: held_out` are tuned.",
)  # fmt: skip
@click.option(
    "--checkpoint", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIR",
    default=shipped_tensor_bundle, show_default="the released one", help="Cost model and schedule store.",
)  # fmt: skip
@click.option(
    "--trials", default=128, show_default=True, type=click.IntRange(16, 100_000),
    help="Of MetaSchedule; from 1000 on, its first 128 and all of them are compared.",
)  # fmt: skip
@click.option(
    "--workloads", "count", metavar="N", type=click.IntRange(1),
    help="The first N of them, in turn of all kinds.  [default: all]",
)  # fmt: skip
@click.option("--only", metavar="TEXT", help="Only workloads whose names contain TEXT, as `conv2d-`.")
@click.option(
    "--held-out-kinds", is_flag=True,
    help="Also transfer from workloads of other kinds only. The cost model is that of the checkpoint: give "
    "one that was trained without the kind.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of MetaSchedule.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Write the document of --json. Rows that are there already are not measured again.",
)  # fmt: skip
def tensor_transfer(
    config: Path, checkpoint: Path, trials: int, count: int | None, only: str | None, held_out_kinds: bool,
    seed: int, output: Path | None,
) -> Report:  # fmt: skip
    """Held-out TVM workloads tuned by transfer, beside MetaSchedule's own search.

    Ratios are latency of MetaSchedule after 128 trials over ours, higher is better, geometric means: with 8
    and with 1 measured candidates, with the first of the ranking unmeasured, and of the floor: one trace of
    the nearest workload of the kind with its tiles decided anew, the best of 8. What fails counts as the
    unscheduled function. All contenders of a workload, PyTorch among them, are verified and timed in turn.
    """
    from gnnperf.frontends.tvm.target import host_target, set_runtime_threads
    from gnnperf.retrieval.folder import check_output
    from gnnperf.tuning.tensor.collect import prepare
    from gnnperf.tuning.tensor.server import BenchServer

    chosen = held_out_workloads(config, only)[:count]
    if output is not None:
        check_output(output)
    set_runtime_threads()
    prepare()
    target = host_target()
    # Forked before torch and the store are loaded.
    with BenchServer([workload.build() for workload in chosen], target) as server:
        from gnnperf.evaluation.cases import RowLog
        from gnnperf.evaluation.tensor import Study, describe_setup, summarise

        study = Study.load(
            chosen, server, target, checkpoint, trials=trials, held_out_kinds=held_out_kinds, seed=seed
        )
        settings = {
            **describe_setup(), "checkpoint": checkpoint, "trials": trials, "seed": seed,
            "held_out_kinds": held_out_kinds,
        }  # fmt: skip

        def measure(number: int, say: Say) -> dict[str, Any]:
            return study.row(number, say)

        log = RowLog(output, json.loads(to_json(settings)))
        rows = measure_rows(
            "tensor-transfer", {w.name: partial(measure, n) for n, w in enumerate(chosen)}, log
        )
    result = summarise(rows, settings)
    if output is not None:
        (output / "tensor-transfer.json").write_text(to_json(vars(result)) + "\n", encoding="utf-8")
    return with_failure(_report(result), len(chosen), output)


def held_out_workloads(config: Path, only: str | None) -> list[Workload]:
    """Those marked `split: held_out` whose names contain `only`, in turn of all kinds. InputError: none."""
    from gnnperf.errors import InputError
    from gnnperf.frontends.tvm.workloads import read_workloads

    held_out = [w for w in read_workloads(config)[1] if w.split == "held_out" and (only or "") in w.name]
    if not held_out:
        raise InputError(f"expected workloads marked `split: held_out`, got none in {config} with {only!r}")
    return scattered(held_out)


def scattered(workloads: list[Workload]) -> list[Workload]:
    """One of every kind, then the next of every kind: the beginning of the list stands for the whole."""
    seen: dict[str, int] = {}
    turns = []
    for workload in workloads:
        turns.append(seen.get(workload.kind, 0))
        seen[workload.kind] = turns[-1] + 1
    return [workload for _, workload in sorted(zip(turns, workloads, strict=True), key=lambda pair: pair[0])]


def _report(result: BenchmarkResult) -> Report:
    return benchmark_report(result, [_shown(row) for row in result.rows])


def _shown(row: Any) -> dict[str, Any]:
    """A row short enough for a terminal."""

    def ratio(above: str, below: str) -> float | None:
        return row[above] / row[below] if row.get(above) and row.get(below) else None

    ours = row.get("ours_8_s")
    return {
        "workload": row["workload"],
        "ours us": ours and 1e6 * ours,
        "at 8": ratio("ms_s", "ours_8_s"),
        "at 1": ratio("ms_s", "ours_1_s"),
        "model only": ratio("ms_s", "model_only_s"),
        "floor": ratio("ms_s", "floor_8_s"),
        "long": ratio("ms_long_s", "ours_8_s"),
        "other kinds": ratio("ms_s", "kind_8_s"),
        "vs torch": ratio("torch_s", "ours_8_s"),
        "trials to match": row.get("trials_to_match_8"),
        "note": "; ".join(filter(None, [row.get("note", ""), *row["failures"]])),
    }
