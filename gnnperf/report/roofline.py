"""Where a program stands below the roofline of a device (Williams, Waterman and Patterson, 2009)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gnnperf.devices import DeviceSpec
from gnnperf.graph.vocabulary import PRECISIONS
from gnnperf.report.axis import LogAxis
from gnnperf.report.words import number

WIDTH, HEIGHT = 440.0, 268.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 12.0, 24.0, 40.0
LABEL = 15.0
"""Least distance of two labels, in pixels."""
LIMITS = ("memory", "compute")


@dataclass(frozen=True)
class Roof:
    """What a device can do at most. flops_per_s, bytes_per_s: its peaks. words: what they are."""

    name: str
    flops_per_s: float
    bytes_per_s: float
    words: str

    @property
    def ridge(self) -> float:
        """FLOP/byte from which on a program is limited by arithmetic."""
        return self.flops_per_s / self.bytes_per_s

    def least_s(self, flops: float, size_bytes: float) -> float:
        """The roofline's runtime."""
        return max(flops / self.flops_per_s, size_bytes / self.bytes_per_s)

    def limit(self, flops: float, size_bytes: float) -> str:
        return LIMITS[flops / self.flops_per_s > size_bytes / self.bytes_per_s]


_PRECISIONS: Mapping[str, str] = {
    **{stored: name for name, stored in PRECISIONS.items() if name != "tf32"},
    "": "fp32",
    "complex64": "fp32",
    "complex128": "fp64",
    "float8_e5m2": "fp8",
}
"""Dtype of graphs -> of operators."""


def roof_of(device: DeviceSpec | None, dtype: str = "float32", matrix: bool = False) -> Roof | None:
    """The roof of a device for a dtype of graphs or of operators; None where its peaks are not known.

    matrix: units that multiply matrices count, where there are such. Other arithmetic on floats of fewer
    bytes is done in fp32.
    """
    if device is None or not device.bandwidth_gbps:
        return None
    name = _PRECISIONS.get(dtype, dtype)
    if not matrix and name in ("tf32", "fp16", "bf16", "fp8"):
        name = "fp32"
    gflops = device.product_gflops(name) if matrix else getattr(device, f"peak_gflops_{name}", None)
    if not gflops:
        return None
    words = f"{number(gflops)} GFLOP/s {name}, {number(device.bandwidth_gbps)} GB/s"
    return Roof(device.name, gflops * 1e9, device.bandwidth_gbps * 1e9, words)


@dataclass(frozen=True)
class Run:
    """A runtime of a program. kind: "before", "after" or "tried", which decides how it is drawn.

    interval_s: drawn as a whisker.
    """

    label: str
    runtime_s: float
    kind: str = "after"
    interval_s: tuple[float, float] | None = None


@dataclass(frozen=True)
class Position:
    """A run below the roof, in numbers. share: the roofline's runtime over its own."""

    label: str
    kind: str
    runtime_s: float
    flops_per_s: float
    bytes_per_s: float
    share: float


@dataclass(frozen=True)
class Mark:
    """A run in the picture. whisker: heights of its ends. label_at: where its label is, and its anchor."""

    label: str
    kind: str
    x: float
    y: float
    whisker: tuple[float, float] | None
    label_at: tuple[float, float, str] | None


@dataclass(frozen=True)
class RooflinePicture:
    """Coordinates of a roofline plot, in a box of WIDTH by HEIGHT."""

    across: LogAxis
    up: LogAxis
    roof: tuple[tuple[float, float], ...]
    marks: tuple[Mark, ...]
    slope_label: tuple[float, float, float]
    """x, y and angle, in degrees."""


@dataclass(frozen=True)
class Roofline:
    """Runs of a program on a device.

    flops, size_bytes: of one run; of bytes the least that it must move. least_s: the roofline's runtime,
    where it is not simply that of these two: of operators one after another it is the sum of theirs.
    """

    roof: Roof
    flops: float
    size_bytes: float
    runs: tuple[Run, ...]
    least_s: float | None = None

    @property
    def intensity(self) -> float:
        """FLOP/byte."""
        return self.flops / self.size_bytes

    @property
    def limit(self) -> str:
        """What the roofline says it is limited by."""
        return self.roof.limit(self.flops, self.size_bytes)

    @property
    def positions(self) -> list[Position]:
        """Of the runs that are named."""
        least_s = self.least_s or self.roof.least_s(self.flops, self.size_bytes)
        return [
            Position(
                run.label, run.kind, run.runtime_s, self.flops / run.runtime_s,
                self.size_bytes / run.runtime_s, least_s / run.runtime_s,
            )
            for run in self.runs if run.kind != "tried"
        ]  # fmt: skip

    @property
    def picture(self) -> RooflinePicture | None:
        """None where there is no arithmetic, hence no place on the axes."""
        if not self.flops:
            return None
        return _picture(self)


def _picture(line: Roofline) -> RooflinePicture:
    roof, intensity = line.roof, line.intensity
    rates = [line.flops / s for run in line.runs for s in (run.runtime_s, *(run.interval_s or ()))]
    low, high = min(intensity, roof.ridge) / 4, max(intensity, roof.ridge) * 4
    across = LogAxis(low, high, LEFT, WIDTH - RIGHT)
    floor = min(*rates, roof.flops_per_s / 30, intensity * roof.bytes_per_s / 3)
    up = LogAxis(floor / 1.6, max(*rates, roof.flops_per_s) * 2, HEIGHT - BOTTOM, TOP)
    start = max(low, up.low / roof.bytes_per_s)
    points = [(start, start * roof.bytes_per_s), (roof.ridge, roof.flops_per_s), (high, roof.flops_per_s)]
    outline = tuple((across.at(x), up.at(y)) for x, y in points)
    (x0, y0), (x1, y1), _ = outline
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    return RooflinePicture(
        across, up, outline, _marks(line, across, up), ((x0 + x1) / 2, (y0 + y1) / 2 - 6, angle)
    )


def _marks(line: Roofline, across: LogAxis, up: LogAxis) -> tuple[Mark, ...]:
    x = across.at(line.intensity)
    left = x > across.start + 0.62 * (across.end - across.start)
    anchor, beside = ("end", x - 9) if left else ("start", x + 9)
    labels = _apart([up.at(line.flops / run.runtime_s) for run in line.runs if run.kind != "tried"])
    marks = []
    for run in line.runs:
        ends = tuple(up.at(line.flops / s) for s in run.interval_s) if run.interval_s else None
        place = (beside, labels.pop(0), anchor) if run.kind != "tried" else None
        whisker = (ends[0], ends[1]) if ends else None
        marks.append(Mark(run.label, run.kind, x, up.at(line.flops / run.runtime_s), whisker, place))
    return tuple(marks)


def _apart(heights: Sequence[float]) -> list[float]:
    """Heights of labels, near the wanted ones and apart from each other."""
    placed: dict[int, float] = {}
    last = -math.inf
    for i in sorted(range(len(heights)), key=lambda i: heights[i]):
        last = placed[i] = max(heights[i], last + LABEL)
    return [placed[i] for i in range(len(heights))]
