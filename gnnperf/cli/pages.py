"""Pages of verbs whose page needs more than what they print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from gnnperf.errors import GnnperfError

if TYPE_CHECKING:
    from gnnperf.devices import DeviceSpec
    from gnnperf.frontends.gpu_kernels import Description
    from gnnperf.frontends.operators import Operator
    from gnnperf.graph import ProgramGraph
    from gnnperf.graph.workload import Workload
    from gnnperf.retrieval.prediction import KernelPrediction
    from gnnperf.retrieval.report import Retrieval
    from gnnperf.retrieval.tunable import Prediction

NOT_MEASURED = "the kernel was not measured anywhere: physics, and what others needed"


def page_of_retrieval(result: Retrieval, graphs: Mapping[str, ProgramGraph]) -> str:
    """HTML of `retrieve`. graphs: of the nests, by digest."""
    from gnnperf.devices import describe_host
    from gnnperf.report import retrieval_page

    measured = any(nest.baseline_s is not None for nest in result.nests)
    return retrieval_page(result, graphs, _with_peaks() if measured else describe_host())


def _with_peaks() -> DeviceSpec:
    """This machine with its measured peaks, for rooflines; they take some seconds the first time."""
    from gnnperf.devices import describe_host, probe

    try:
        if describe_host().bandwidth_gbps is None:
            click.echo("gnnperf: measuring the peaks of this machine, once", err=True)
        return probe()
    except GnnperfError as error:
        click.echo(f"gnnperf: no rooflines: {error}", err=True)
        return describe_host()


def page_of_operators(
    kernel: str, operators: Sequence[Operator], workloads: Sequence[Workload],
    rows: Sequence[tuple[str, KernelPrediction]], left_out: Mapping[str, int],
) -> str:  # fmt: skip
    """HTML of `predict` for operators. rows: (GPU as it was named, what is said of it)."""
    from gnnperf.report import Forecast, prediction_page

    products = any(workload.kind == "contraction" for workload in workloads)
    forecasts = [
        Forecast(
            name,
            found.device,
            found.runtime_s,
            {f"{level:.0%}": ends for level, ends in (found.intervals_s or {}).items()} or None,
            found.roofline_s,
            sum(w.flops for w in workloads),
            sum(w.read_bytes + w.written_bytes for w in workloads),
            found.operators_s,
            products,
            found.remarks,
            found.objection,
        )
        for name, found in rows
    ]
    notes = [f"left out: {count} of the unknown operator {name}" for name, count in left_out.items()]
    graph = operators[0].graph() if len(operators) == 1 else None
    return prediction_page(kernel, forecasts, list(map(repr, operators)), notes, graph)


def page_of_configuration(
    kernel: str, description: Description, configuration: Mapping[str, int],
    rows: Sequence[tuple[str, DeviceSpec, Prediction]], measured: bool,
) -> str:  # fmt: skip
    """HTML of `predict` for a configuration of a tunable kernel, where `measured` says whether the kernel
    was, on some GPU."""
    from gnnperf.frontends.gpu_kernels import scheduled_graph
    from gnnperf.frontends.gpu_kernels.tables import Candidates
    from gnnperf.report import Forecast, prediction_page

    forecasts = []
    for name, device, found in rows:
        if not found.fits[0]:
            forecasts.append(Forecast(name, device, objection=too_large(device)))
            continue
        physics = Candidates(description, device, [configuration]).physics
        intervals = {
            f"{level}%": (float(lo[0]) * 1e-3, float(hi[0]) * 1e-3)
            for level, (lo, hi) in found.interval_ms.items()
        }
        least_s, flops, size_bytes = (
            float(physics[what][0]) for what in ("roofline_s", "flops", "distinct_bytes")
        )
        runtime_s = float(found.runtime_ms[0]) * 1e-3
        forecasts.append(Forecast(name, device, runtime_s, intervals, least_s, flops, size_bytes))
    notes = [] if measured else [NOT_MEASURED]
    return prediction_page(kernel, forecasts, notes=notes, graph=scheduled_graph(description, configuration))


def too_large(device: DeviceSpec) -> str:
    """Why nothing is said of a configuration on a GPU."""
    return f"a block needs more shared memory or threads than one can have on {device.name}"
