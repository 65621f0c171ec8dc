"""Pages of verbs whose page needs more than what they print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from gnnperf.errors import GnnperfError

if TYPE_CHECKING:
    from gnnperf.devices import DeviceSpec
    from gnnperf.graph import ProgramGraph
    from gnnperf.retrieval.gpu import ConfigurationForecast, OperatorForecast
    from gnnperf.retrieval.report import RetrievalReport

NOT_MEASURED = "the kernel was not measured anywhere: physics, and what others needed"


def page_of_retrieval(result: RetrievalReport, graphs: Mapping[str, ProgramGraph]) -> str:
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


def page_of_operators(found: OperatorForecast) -> str:
    """HTML of `predict` for operators."""
    from gnnperf.report import Forecast, prediction_page

    workloads, operators = found.workloads, found.operators
    forecasts = [
        Forecast(
            name,
            one.device,
            one.runtime_s,
            {f"{level:.0%}": ends for level, ends in (one.intervals_s or {}).items()} or None,
            one.roofline_s,
            sum(w.flops for w in workloads),
            sum(w.read_bytes + w.written_bytes for w in workloads),
            one.operators_s,
            any(workload.kind == "contraction" for workload in workloads),
            one.remarks,
            one.objection,
        )
        for name, one in found.predictions.items()
    ]
    notes = [f"left out: {count} of the unknown operator {name}" for name, count in found.left_out.items()]
    graph = operators[0].graph() if len(operators) == 1 else None
    return prediction_page(found.kernel, forecasts, list(map(repr, operators)), notes, graph)


def page_of_configuration(found: ConfigurationForecast) -> str:
    """HTML of `predict` for a configuration of a tunable kernel."""
    from gnnperf.frontends.gpu_kernels import scheduled_graph
    from gnnperf.frontends.gpu_kernels.tables import Candidates
    from gnnperf.report import Forecast, prediction_page
    from gnnperf.retrieval.gpu import too_large

    forecasts = []
    for name, one in found.predictions.items():
        device = found.devices[name]
        if not one.fits[0]:
            forecasts.append(Forecast(name, device, objection=too_large(device)))
            continue
        physics = Candidates(found.description, device, [found.configuration]).physics
        intervals = {
            f"{level}%": (float(lo[0]) * 1e-3, float(hi[0]) * 1e-3)
            for level, (lo, hi) in one.interval_ms.items()
        }
        least_s, flops, size_bytes = (
            float(physics[what][0]) for what in ("roofline_s", "flops", "distinct_bytes")
        )
        runtime_s = float(one.runtime_ms[0]) * 1e-3
        forecasts.append(Forecast(name, device, runtime_s, intervals, least_s, flops, size_bytes))
    notes = [] if found.measured else [NOT_MEASURED]
    graph = scheduled_graph(found.description, found.configuration)
    return prediction_page(found.kernel, forecasts, notes=notes, graph=graph)
