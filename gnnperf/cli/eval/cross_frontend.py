"""`gnnperf eval cross-frontend`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnnperf.cli.eval.cases import kernels_option
from gnnperf.cli.eval.measured import measure_rows, row_log, with_failure
from gnnperf.cli.eval.table import benchmark_report, write_document
from gnnperf.cli.eval.tensor_options import output_option, ready_to_measure, tensor_checkpoint_option
from gnnperf.cli.options import checkpoint_option
from gnnperf.cli.output import Report, Verb
from gnnperf.shipped import shipped

if TYPE_CHECKING:
    from gnnperf.evaluation import BenchmarkResult


@click.command("cross-frontend", cls=Verb, page=True)
@click.option(
    "--cases", "path", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
    default=lambda: shipped("configs/cases") / "cross_frontend.py",
    show_default="configs/cases/cross_frontend.py",
    help="DaCe programs with their SIZES; FILE with _tvm before .py has them as TVM functions.",
)  # fmt: skip
@kernels_option
@click.option(
    "-k", default=5, show_default=True, type=click.IntRange(1, 100),
    help="Schedules measured for each kernel, frontend and origin.",
)  # fmt: skip
@checkpoint_option
@tensor_checkpoint_option("--tensor-checkpoint", "Cost model and schedule store of TVM programs.")
@output_option
def cross_frontend(
    path: Path, kernels: tuple[str, ...], k: int, checkpoint: Path, tensor_checkpoint: Path,
    output: Path | None,
) -> Report:  # fmt: skip
    """Schedules that were found in one frontend, carried over to the other.

    Every kernel is a DaCe program and a TVM function with the same loops. The recipes that `retrieve` would
    try on the program become TVM schedules, beside what `retrieve` tries on the function; the best traces of
    the nearest TVM workloads become recipes, beside what `retrieve` tries on the program. All are verified,
    and the best of k counts; what a store has of the kernel itself is left out. Ratios say how much faster
    the carried schedule is than the default, and than the native one.
    """
    from gnnperf.backends.tvm.server import BenchServer
    from gnnperf.evaluation.cross_frontend.kernels import read_pairs
    from gnnperf.frontends.tvm.fast_import import import_tvm

    import_tvm()
    pairs = read_pairs(path, kernels)
    target = ready_to_measure(output)
    tasks = [pair.task() for pair in pairs]
    # Forked before torch and the stores are loaded.
    with BenchServer([task.module for task in tasks], target) as server:
        from gnnperf.evaluation.cross_frontend.study import Study, setup, summarise

        study = Study.load(pairs, tasks, server, target, checkpoint, tensor_checkpoint, k)
        settings = {
            **setup(), "k": k, "cases": path, "checkpoint": checkpoint, "tensor_checkpoint": tensor_checkpoint
        }  # fmt: skip
        work = {pair.name: partial(study.row, n) for n, pair in enumerate(pairs)}
        rows = measure_rows("cross-frontend", work, row_log(output, settings))
    result = summarise(rows, settings)
    write_document(result, output)
    return with_failure(_report(result), len(pairs), output)


def _report(result: BenchmarkResult) -> Report:
    return benchmark_report(result, [_shown(row) for row in result.rows])


def _shown(row: Any) -> dict[str, Any]:
    """A row short enough for a terminal."""
    default_s, carried_s, native_s = (row.get(f"tvm_{name}_s") for name in ("default", "carried", "native"))
    carried, native = row.get("dace_carried_speedup"), row.get("dace_native_speedup")
    return {
        "kernel": row["kernel"],
        "tvm-default us": default_s and 1e6 * default_s,
        "carried us": carried_s and 1e6 * carried_s,
        "native us": native_s and 1e6 * native_s,
        "native / carried": native_s / carried_s if native_s and carried_s else None,
        "auto_optimize us": row.get("dace_baseline_s") and 1e6 * row["dace_baseline_s"],
        "carried": carried and f"{carried:.3g}x",
        "native": native and f"{native:.3g}x",
        "carried / native": carried / native if carried and native else None,
        "note": "; ".join(row["failures"]),
    }
