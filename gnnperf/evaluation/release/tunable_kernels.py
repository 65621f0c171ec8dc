"""`gnnperf train release tunable-kernels`: networks of demands, and the measurements they learned from."""

from __future__ import annotations

from pathlib import Path

from gnnperf.errors import InputError
from gnnperf.evaluation.gpu_schedules import StudySettings, evaluate_gpu_schedules, summarise
from gnnperf.evaluation.gpu_schedules.study import half_widths, tasks
from gnnperf.evaluation.release import Progress, Trained, check_settings, read_evaluation
from gnnperf.frontends.gpu_kernels.tables import load_tables
from gnnperf.nn import ModelProvenance
from gnnperf.nn.demand import ANY, Demand, DemandBundle, measured_files
from gnnperf.training.demand import DemandFitSettings, fit_demand


def train_tunable_kernels(
    data: Path, evaluation: Path | None, seeds: range, settings: DemandFitSettings, progress: Progress
) -> Trained:
    """Train networks on all that was measured: one for each kernel, and one for any other. The rows say by
    which factor a runtime may lie above or below what is predicted.

    Args:
        data: file of measured configurations.
        evaluation: document of `gnnperf eval gpu-schedules`, where every GPU and kernel was held out in turn:
            intervals and figures come from it. None: it is done first.
        seeds: of the networks that are averaged.
        settings: of each training.

    Raises:
        InputError: no such file, nothing to hold out, or an evaluation of something else.
    """
    tables = load_tables(data)
    study = StudySettings(len(seeds), settings)
    if evaluation:
        document = read_evaluation(evaluation, "gpu-schedules")
        made_with = {"data": data.name, "fit": settings, "protocols": study.protocols}
        check_settings(evaluation, document["settings"], made_with)
        judged, figures = document["rows"], document["figures"]
        spaces = {(table.space, table.gpu, len(table)) for table in tables}
        if {(row["space"], row["gpu"], row["configurations"]) for row in judged} != spaces:
            raise InputError(f"{evaluation}: expected an evaluation on {data}, got one of other measurements")
    else:
        count = sum(1 for _ in tasks(tables, study.protocols))
        with progress("holding GPUs and kernels out", count) as advance:
            judged, errors = evaluate_gpu_schedules(tables, study, advance)
        figures = summarise(judged, errors, study, data.name).figures
    kernels = [*dict.fromkeys(table.kernel for table in tables), ANY]
    networks: dict[str, list[Demand]] = {}
    with progress("training", len(kernels)) as advance:
        for kernel in kernels:
            advance(0, kernel)
            mine = tables if kernel == ANY else [table for table in tables if table.kernel == kernel]
            networks[kernel] = [fit_demand(mine, own=kernel != ANY, seed=s, settings=settings) for s in seeds]
            advance()
    corpus = {"file": data.name, "rows": sum(map(len, tables)), "tables": len(tables)}
    widths, adapted = (half_widths(judged, error) for error in ("error", "adapted_error"))
    provenance = ModelProvenance(corpus, figures, seeds)
    rows = [
        {"kernel": kernel, **{f"factor_{level}%": 2.0**width for level, width in of.items()}}
        for kernel, of in widths.items()
    ]
    return Trained(DemandBundle(networks, widths, adapted, provenance, measured_files(tables)), rows)
