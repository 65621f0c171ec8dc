"""The page of `gnnperf retrieve KERNEL --gpu NAME`: configurations to try first, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnnperf.frontends.gpu_kernels import Description, scheduled_graph
from gnnperf.frontends.gpu_kernels.tables import Candidates
from gnnperf.report.nest_picture import draw_nest
from gnnperf.report.page import render
from gnnperf.report.roofline import Roofline, Run, roof_of
from gnnperf.report.spans import SpanAxis
from gnnperf.report.words import duration_label
from gnnperf.retrieval.tunable import ConfigurationProposal


def configurations_page(
    proposal: ConfigurationProposal, description: Description, sizes: Mapping[str, float] | None = None
) -> str:
    """HTML of a proposal. sizes: problem size, where it is not the description's."""
    configurations = proposal.configurations
    varying = [n for n in configurations[0] if len({c[n] for c in configurations}) > 1]
    runtimes_s = (proposal.prediction.runtime_ms * 1e-3).tolist()
    intervals = _intervals_s(proposal)
    ends = [end for found in intervals for pair in found.values() for end in pair]
    axis = SpanAxis.covering(ends, duration_label)
    spans = [axis.levels(found, s) for found, s in zip(intervals, runtimes_s, strict=True)]
    return render(
        "configurations.html",
        f"{proposal.kernel} on {proposal.device.name}: configurations to try",
        proposal=proposal,
        varying=varying,
        common={n: v for n, v in configurations[0].items() if n not in varying},
        rows=[
            {"values": [c[name] for name in varying], "runtime_s": s, "intervals_s": found, "span": span}
            for c, s, found, span in zip(configurations, runtimes_s, intervals, spans, strict=True)
        ],
        levels=list(proposal.prediction.interval_ms),
        axis=axis,
        sizes={**description.sizes, **(sizes or {})},
        roofline=_roofline(proposal, description, sizes),
        picture=draw_nest(scheduled_graph(description, configurations[0], sizes)),
    )


def _intervals_s(proposal: ConfigurationProposal) -> list[dict[str, tuple[float, float]]]:
    """Of every configuration, by level such as "80%"."""
    levels = proposal.prediction.interval_ms
    return [
        {f"{level}%": (float(lo[i]) * 1e-3, float(hi[i]) * 1e-3) for level, (lo, hi) in levels.items()}
        for i in range(len(proposal.configurations))
    ]


def _roofline(
    proposal: ConfigurationProposal, description: Description, sizes: Mapping[str, float] | None
) -> Roofline | None:
    """Of the first configuration, with the others as marks; all do the same arithmetic."""
    given: list[Mapping[str, Any]] = [{**c, **(sizes or {})} for c in proposal.configurations]
    physics = Candidates(description, proposal.device, given).physics
    roof = roof_of(proposal.device, description.dtype)
    flops, size_bytes = float(physics["flops"][0]), float(physics["distinct_bytes"][0])
    if roof is None or not size_bytes:
        return None
    runtimes_s = (proposal.prediction.runtime_ms * 1e-3).tolist()
    others = [Run("another configuration", s, "tried") for s in runtimes_s[1:]]
    interval = _intervals_s(proposal)[0].get("80%")
    return Roofline(
        roof, flops, size_bytes, (*others, Run("first, predicted", runtimes_s[0], "after", interval))
    )
