"""Pictures of program graphs for people, with matplotlib (imported only when drawing)."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from gnnperf.errors import InputError
from gnnperf.figures import figure
from gnnperf.graph.captions import caption, title
from gnnperf.graph.layout import layered_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import FancyBboxPatch

    from gnnperf.graph.program_graph import ProgramGraph

Point: TypeAlias = tuple[float, float]
Lines: TypeAlias = Sequence[tuple[str, bool]]

FORMATS = (".svg", ".png", ".pdf")
COLUMN, BOX, GAP = 2.35, 2.1, 0.62  # inches: pitch of columns, width of boxes, space between rows
LINE, MARGIN = 0.145, 0.5  # inches: height of a line of text, space above and below
WRAP = 31  # characters per line

FILL = {
    "loop": "#cfe2f3",
    "compute": "#fce5cd",
    "intrinsic": "#f4cccc",
    "access": "#f3f3f3",
    "buffer": "#d9ead3",
}
STROKE = {
    "contains": "#1f4e79",
    "indexes": "#8fb8de",
    "reads": "#38761d",
    "writes": "#b45f06",
    "flows": "#7b3fa0",
    "assigns": "#cc0000",
}


def draw(graph: ProgramGraph, path: Path) -> None:
    """Write a layered picture to `path`; the suffix chooses svg, png or pdf.

    Loops that an access does not move with have no line to it; its box names them as reuse.
    Raises InputError for another suffix or a path that cannot be written.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"expected a picture file ending in {', '.join(FORMATS)}, got {str(path)!r}")
    lines = [_wrapped(*caption(graph, i)) for i in range(len(graph.nodes))]
    place, height = _inches(layered_layout(graph), lines)
    width = max(6.0, max((x for x, _ in place), default=0.0) + COLUMN)
    try:
        with figure(path, width, height, layout=None) as picture:
            axes = picture.add_axes((0.0, 0.0, 1.0, 1.0))
            axes.set(xlim=(-COLUMN / 2, width - COLUMN / 2), ylim=(-height, 0))
            axes.axis("off")
            nodes = zip(graph.nodes, place, lines, strict=True)
            boxes = [_box(axes, node.kind, *xy, text) for node, xy, text in nodes]
            _lines(axes, graph, boxes)
            middle = width / 2 - COLUMN / 2
            axes.text(
                middle, -MARGIN / 2, title(graph), ha="center", va="center", fontsize=9, parse_math=False
            )
            _legend(axes, graph)
    except OSError as error:
        raise InputError(
            f"expected a path that can be written, got {str(path)!r}: {error.strerror}"
        ) from None


def _wrapped(head: str, *rest: str) -> list[tuple[str, bool]]:
    """Lines of text and whether they are of the label."""
    label = textwrap.wrap(head, WRAP, max_lines=2, placeholder=" ...")
    return [(line, True) for line in label] + [
        (line, False) for part in rest for line in textwrap.wrap(part, WRAP + 4)
    ]


def _high(lines: Lines) -> float:
    return LINE * len(lines) + 0.08


def _inches(layout: Mapping[int, tuple[float, int]], lines: Sequence[Lines]) -> tuple[list[Point], float]:
    """Centres of the boxes, downwards from the upper edge, and the height of the page."""
    rows: defaultdict[int, float] = defaultdict(float)
    for node, (_, row) in layout.items():
        rows[row] = max(rows[row], _high(lines[node]))
    centre, y = {}, MARGIN
    for row, high in sorted(rows.items()):
        centre[row] = -(y + high / 2)
        y += high + GAP
    return [(layout[i][0] * COLUMN, centre[layout[i][1]]) for i in range(len(lines))], y - GAP + MARGIN


def _box(axes: Axes, kind: str, x: float, y: float, lines: Lines) -> FancyBboxPatch:
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (x - BOX / 2, y - _high(lines) / 2),
        BOX,
        _high(lines),
        boxstyle="round,pad=0,rounding_size=0.06",
        facecolor=FILL[kind],
        edgecolor="#555555",
        linewidth=0.7,
        zorder=3,
    )
    axes.add_patch(box)
    for i, (line, is_label) in enumerate(lines):
        axes.text(
            x,
            y + _high(lines) / 2 - 0.04 - LINE * (i + 0.5),
            line,
            ha="center",
            va="center",
            fontsize=7.5 if is_label else 6.5,
            fontweight="bold" if is_label else "normal",
            color="#111111" if is_label else "#444444",
            zorder=4,
            parse_math=False,
        )
    return box


def _lines(axes: Axes, graph: ProgramGraph, boxes: Sequence[FancyBboxPatch]) -> None:
    """One arrow per kind of edge between two nodes; arrows within a row are arcs."""
    from matplotlib.patches import FancyArrowPatch

    kinds: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    for edge in graph.edges:
        if not (edge.kind == "indexes" and edge["subscript"] == "invariant"):
            kinds[edge.source, edge.target].add(edge.kind)
    for (source, target), found in kinds.items():
        start, end, bend = _route(boxes[source], boxes[target])
        for kind in sorted(found):
            axes.add_patch(
                FancyArrowPatch(
                    start,
                    end,
                    patchA=None if source == target else boxes[source],
                    patchB=None if source == target else boxes[target],
                    arrowstyle="-|>",
                    mutation_scale=7,
                    connectionstyle=f"arc3,rad={bend}",
                    color=STROKE[kind],
                    linewidth=0.7 if kind == "indexes" else 1.1,
                    linestyle="--" if kind == "flows" else "-",
                    zorder=1 if kind == "indexes" else 2,
                )
            )


def _route(source: FancyBboxPatch, target: FancyBboxPatch) -> tuple[Point, Point, float]:
    """Ends of an arrow and how far it bends."""
    (x, y), end = ((box.get_x() + BOX / 2, box.get_y() + box.get_height() / 2) for box in (source, target))
    if source is target:
        top = y + source.get_height() / 2
        return (x - 0.4, top), (x + 0.4, top), -0.6
    return (x, y), end, -0.35 if y == end[1] else 0.06


def _legend(axes: Axes, graph: ProgramGraph) -> None:
    from matplotlib.lines import Line2D

    present = {e.kind for e in graph.edges}
    handles = [
        Line2D([], [], color=colour, linestyle="--" if kind == "flows" else "-", label=kind)
        for kind, colour in STROKE.items()
        if kind in present
    ]
    if handles:
        axes.legend(handles=handles, loc="lower center", ncols=len(handles), fontsize=7, frameon=False)
