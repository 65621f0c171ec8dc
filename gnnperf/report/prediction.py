"""The page of `gnnperf predict`: runtimes with their intervals, and their places on rooflines, by GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gnnperf.devices import DeviceSpec
from gnnperf.graph import ProgramGraph
from gnnperf.report.nest_picture import draw_nest
from gnnperf.report.page import render
from gnnperf.report.roofline import Roofline, Run, roof_of
from gnnperf.report.spans import Span, SpanAxis
from gnnperf.report.words import duration_label

LISTED = 20
"""Operators that are listed, the longest first; the others are summed up."""


@dataclass(frozen=True)
class Forecast:
    """What is said of one GPU; times in seconds.

    gpu: as the user named it. intervals_s: by level ("50%", "80%", "95%"), (lower, upper). roofline_s: least
    runtime by the device's peaks. flops, size_bytes: of the kernel, bytes being the least that it must move.
    operators_s: of each operator alone. dtype: of most of the arithmetic. matrix: units that multiply
    matrices count for the roofline. objection: why nothing is said; the rest is empty then.
    """

    gpu: str
    device: DeviceSpec
    runtime_s: float | None = None
    intervals_s: Mapping[str, tuple[float, float]] | None = None
    roofline_s: float | None = None
    flops: float = 0.0
    size_bytes: float = 0.0
    operators_s: Sequence[float] = ()
    dtype: str = "fp32"
    matrix: bool = False
    remarks: Sequence[str] = ()
    objection: str | None = None

    @property
    def roofline(self) -> Roofline | None:
        roof = roof_of(self.device, self.dtype, self.matrix)
        if roof is None or self.runtime_s is None or self.intervals_s is None or not self.size_bytes:
            return None
        run = Run("predicted", self.runtime_s, "after", self.intervals_s.get("80%"))
        return Roofline(roof, self.flops, self.size_bytes, (run,), self.roofline_s)


def prediction_page(
    kernel: str,
    forecasts: Sequence[Forecast],
    operators: Sequence[str] = (),
    notes: Sequence[str] = (),
    graph: ProgramGraph | None = None,
) -> str:
    """HTML of predicted runtimes.

    Args:
        kernel: as the user named it.
        forecasts: of every GPU, in the order in which they are shown.
        operators: names of what runs one after another, in the order of `Forecast.operators_s`.
        notes: what is said of all GPUs.
        graph: of the kernel where it is a single nest.
    """
    said = [f for f in forecasts if f.runtime_s is not None and f.intervals_s is not None]
    axis = _axis(said)
    spans: dict[int, Span] = {}
    for forecast in said:
        assert axis is not None and forecast.intervals_s is not None and forecast.runtime_s is not None
        spans[id(forecast)] = axis.levels(forecast.intervals_s, forecast.runtime_s, forecast.roofline_s)
    return render(
        "prediction.html",
        f"{kernel}: predicted runtimes",
        kernel=kernel,
        forecasts=[(forecast, spans.get(id(forecast))) for forecast in forecasts],
        said=said,
        axis=axis,
        levels=list(said[0].intervals_s or ()) if said else [],
        operators=_operators(operators, said),
        operator_count=len(operators),
        notes=notes,
        picture=None if graph is None else draw_nest(graph),
    )


def _axis(said: Sequence[Forecast]) -> SpanAxis | None:
    values = [end for f in said for ends in (f.intervals_s or {}).values() for end in ends]
    values += [f.roofline_s for f in said if f.roofline_s]
    return SpanAxis.covering(values, duration_label) if said else None


@dataclass(frozen=True)
class _Row:
    """Equal operators together. times_s: of all of them, by GPU; shares: of the sum of all operators."""

    name: str
    count: int
    times_s: tuple[float, ...]
    shares: tuple[float, ...]


def _operators(names: Sequence[str], said: Sequence[Forecast]) -> list[_Row]:
    """The longest first, on the first GPU; what is beyond LISTED is one row."""
    measured = [f for f in said if len(f.operators_s) == len(names)]
    if len(names) < 2 or not measured:
        return []
    totals = [sum(f.operators_s) for f in measured]
    where: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        where.setdefault(name, []).append(i)

    def row(name: str, places: Sequence[int]) -> _Row:
        times_s = tuple(sum(f.operators_s[i] for i in places) for f in measured)
        return _Row(name, len(places), times_s, tuple(t / s for t, s in zip(times_s, totals, strict=True)))

    rows = sorted((row(name, places) for name, places in where.items()), key=lambda r: -r.times_s[0])
    if len(rows) <= LISTED + 1:
        return rows
    rest = [i for r in rows[LISTED:] for i in where[r.name]]
    return [*rows[:LISTED], row(f"{len(rows) - LISTED} other operators", rest)]
