"""The page of `gnnperf retrieve`: the verdict; of every nest its graph, neighbours, trials, roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gnnperf.devices import DeviceSpec
from gnnperf.graph import ProgramGraph
from gnnperf.report.nest_picture import NestPicture, draw_nest
from gnnperf.report.page import render
from gnnperf.report.roofline import Roofline, Run, roof_of
from gnnperf.report.spans import Span, SpanAxis
from gnnperf.report.words import times_label
from gnnperf.retrieval.report import NestReport, RetrievalReport, TriedReport

NEAREST = 8
"""Neighbours that are listed; the others are behind a fold."""


def retrieval_page(
    result: RetrievalReport, graphs: Mapping[str, ProgramGraph], device: DeviceSpec | None
) -> str:
    """HTML of what `retrieve` found.

    Args:
        result: the answer.
        graphs: of the nests, by digest; a nest without one has no picture.
        device: where it was measured, with its peaks if they are known; without, there are no rooflines.
    """
    axis = _axis(result)
    shown = [_Nest(nest, graphs.get(nest.digest), device, axis) for nest in result.nests]
    whole = None
    if axis is not None and result.speedup is not None and result.speedup_interval is not None:
        whole = axis.span(result.speedup_interval, result.speedup, "kept")
    return render(
        "retrieval.html",
        f"{result.kernel}: retrieved schedules",
        result=result,
        device=device,
        nests=shown,
        axis=axis,
        whole=whole,
        stages=[(name, s, s / max(result.stages_s.values())) for name, s in result.stages_s.items() if s],
    )


def beats_roof(
    result: RetrievalReport, graphs: Mapping[str, ProgramGraph], device: DeviceSpec | None
) -> bool:
    """Whether a nest computed faster than the device is said to be able to: then its peaks are wrong."""
    rooflines = [_Nest(nest, graphs.get(nest.digest), device, None).roofline for nest in result.nests]
    return any(
        position.flops_per_s > _BEATEN * found.roof.flops_per_s
        for found in rooflines
        if found is not None
        for position in found.positions
    )


_BEATEN = 1.05


@dataclass
class _Nest:
    """A nest as the template shows it."""

    report: NestReport
    graph: ProgramGraph | None
    device: DeviceSpec | None
    axis: SpanAxis | None

    @property
    def kept(self) -> TriedReport | None:
        """The candidate that was accepted, where it is among those that were tried on the nest alone."""
        accepted = self.report.accepted
        return next((t for t in self.report.candidates if accepted and t.schedule == accepted), None)

    @property
    def best(self) -> TriedReport | None:
        """What the summary shows: what was kept, else the best that was measured."""
        measured = [t for t in self.report.candidates if t.speedup is not None]
        return self.kept or max(measured, key=lambda t: t.speedup or 0.0, default=None)

    @cached_property
    def picture(self) -> NestPicture | None:
        return None if self.graph is None else draw_nest(self.graph)

    @property
    def neighbours(self) -> Sequence[Mapping[str, object]]:
        return self.report.neighbours[:NEAREST]

    @property
    def further(self) -> Sequence[Mapping[str, object]]:
        return self.report.neighbours[NEAREST:]

    @property
    def farthest(self) -> float:
        """Distance that fills a bar."""
        return max((float(n["distance"]) for n in self.report.neighbours), default=1.0) or 1.0

    @cached_property
    def roofline(self) -> Roofline | None:
        """None where the nest was not measured, or the device's peaks are not known."""
        graph, before_s = self.graph, self.report.baseline_s
        if graph is None or before_s is None or self.picture is None:
            return None
        roof = roof_of(self.device, self.picture.dtype)
        flops, size_bytes = (graph.number(name) for name in ("total_flops", "distinct_bytes"))
        if roof is None or not size_bytes:
            return None
        tried = [t for t in self.report.candidates if t.runtime_s and t is not self.kept]
        runs = [Run(t.words, t.runtime_s, "tried") for t in tried if t.runtime_s]
        runs.append(Run("baseline", before_s, "before"))
        kept = self.kept
        if kept is not None and kept.runtime_s:
            runs.append(Run("kept", kept.runtime_s, "after"))
        return Roofline(roof, flops, size_bytes, tuple(runs))

    def span(self, tried: TriedReport | None) -> Span | None:
        """The speedup of a candidate in its cell."""
        if self.axis is None or tried is None or tried.speedup is None:
            return None
        style = "kept" if tried is self.kept else "slower" if tried.speedup < 1 else ""
        return self.axis.span(tried.speedup_interval, tried.speedup, style)


def _axis(result: RetrievalReport) -> SpanAxis | None:
    """One axis for all speedups of the page; None where nothing was measured."""
    values = [*(result.speedup_interval or ())]
    for nest in result.nests:
        for tried in nest.candidates:
            if tried.speedup is not None:
                values += [tried.speedup, *(tried.speedup_interval or ())]
    return SpanAxis.covering(values, times_label, reference=1.0) if values else None
