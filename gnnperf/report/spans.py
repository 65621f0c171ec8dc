"""Intervals drawn into the cells of a table, all on one logarithmic axis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gnnperf.report.axis import LogAxis

WIDTH, HEIGHT = 200.0, 22.0
MARGIN = 14.0
"""Pixels: of a cell, and beside the axis, where labels of its ends have room."""


@dataclass(frozen=True)
class Span:
    """One cell. bars: (from, to, style), the widest first; middle: of the dot, None where there is none.
    tick: a mark of something to compare with."""

    bars: tuple[tuple[float, float, str], ...]
    middle: float | None
    style: str = ""
    tick: float | None = None


@dataclass(frozen=True)
class SpanAxis:
    """The axis of a column. ticks: (label, place). reference: place of the line to compare with, or None."""

    ticks: tuple[tuple[str, float], ...]
    reference: float | None
    axis: LogAxis

    @classmethod
    def covering(
        cls, values: Iterable[float], label: Callable[[float], str], reference: float | None = None
    ) -> SpanAxis:
        """With all of the values, and the reference."""
        shown = [*values] + ([] if reference is None else [reference])
        axis = LogAxis.covering(shown, MARGIN, WIDTH - MARGIN)
        ticks = _spread([(label(value), place) for value, place in axis.ticks()])
        return cls(tuple(ticks), None if reference is None else axis.at(reference), axis)

    def span(
        self,
        interval: Sequence[float] | None,
        middle: float | None,
        style: str = "",
        tick: float | None = None,
    ) -> Span:
        """A cell with one interval, or none."""
        bars = () if interval is None else (self._bar(interval, "whole"),)
        at = self.axis.at
        return Span(bars, None if middle is None else at(middle), style, None if tick is None else at(tick))

    def levels(
        self, intervals: Mapping[str, Sequence[float]], middle: float, tick: float | None = None
    ) -> Span:
        """A cell with intervals inside one another, by level such as "80%"."""
        widest = sorted(intervals.items(), key=lambda item: item[1][0] - item[1][1])
        bars = tuple(self._bar(ends, f"level{level.rstrip('%')}") for level, ends in widest)
        return Span(bars, self.axis.at(middle), "", None if tick is None else self.axis.at(tick))

    def _bar(self, ends: Sequence[float], style: str) -> tuple[float, float, str]:
        return self.axis.at(ends[0]), self.axis.at(ends[1]), style


def _spread(ticks: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Those whose labels do not touch."""
    kept: list[tuple[str, float]] = []
    for label, place in ticks:
        room = 0.0 if not kept else 3.4 * (len(label) + len(kept[-1][0])) + 6
        if not kept or place - kept[-1][1] >= room:
            kept.append((label, place))
    return kept
