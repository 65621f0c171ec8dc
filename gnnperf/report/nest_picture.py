"""The picture of a nest's graph: loops as bars beside what they contain, with how every access moves.

Draws the rows of `gnnperf.report.explore.picture` as the map of the store does in the browser, here
without a script, so that it prints.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

from gnnperf.graph import ProgramGraph
from gnnperf.graph.captions import bytes_text
from gnnperf.report.explore.picture import ACCESS, LOOP, STATEMENT, Row, picture

WIDTH = 440.0
ROW, INDENT, CHARACTER = 18.0, 16.0, 7.25
"""Pixels: height of a row, distance of bars, width of a letter."""
MOST_ROWS = 70

SIGNS = {"read": "", "write": " =", "reduction": " +="}
MOVES = {
    "c": ("contiguous", "full", "M4 0A4 4 0 1 1-4 0A4 4 0 1 1 4 0Z"),
    "s": ("strided", "full", "M0-4.6L4.6 0L0 4.6L-4.6 0Z"),
    "r": ("same element again", "hollow", "M3.4 0A3.4 3.4 0 1 1-3.4 0A3.4 3.4 0 1 1 3.4 0Z"),
    "i": ("indirect or not affine", "hollow", "M-3.4-3.4L3.4 3.4M3.4-3.4L-3.4 3.4"),
}
"""What an access does from one iteration of a loop to the next: meaning, style and shape of its symbol."""
LOOP_KINDS = ("spatial", "reduction", "sequential", "data-dependent")


@dataclass(frozen=True)
class Bar:
    x: float
    top: float
    bottom: float
    kind: str


@dataclass(frozen=True)
class PictureSymbol:
    x: float
    y: float
    kind: str
    style: str
    path: str


@dataclass(frozen=True)
class Text:
    x: float
    y: float
    style: str
    text: str


@dataclass
class NestPicture:
    """Coordinates in a box of `width` by `height` pixels. words: what it shows, for those who cannot see."""

    width: float = WIDTH
    height: float = 0.0
    bars: list[Bar] = field(default_factory=list)
    symbols: list[PictureSymbol] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    words: str = ""
    sizes: str = ""
    work: str = ""
    dtype: str = ""


def draw_nest(graph: ProgramGraph) -> NestPicture:
    """The picture of a program graph, scheduled or not."""
    found = picture(graph)
    drawn = _Drawing(found.rows).drawn
    drawn.sizes, drawn.work, drawn.dtype = found.sizes, found.work, found.dtype
    return drawn


class _Drawing:
    def __init__(self, rows: tuple[Row, ...]) -> None:
        self.drawn = NestPicture()
        self.y = 0.0
        self.open: list[tuple[str, float]] = []
        for row in rows[:MOST_ROWS]:
            self._close(int(str(row[1])))
            {LOOP: self._loop, STATEMENT: self._statement, ACCESS: self._access}[int(str(row[0]))](row)
            self.y += ROW
        self._close(0)
        if len(rows) > MOST_ROWS:
            self._text(8.0, "note", f"… {len(rows) - MOST_ROWS} more rows")
            self.y += ROW
        self.drawn.height = self.y + 2
        told = (f"{r[5]} loop {r[2]}" if r[0] == LOOP else str(r[2]) for r in rows if r[0] != ACCESS)
        self.drawn.words = "; ".join(told)

    def _close(self, depth: int) -> None:
        while len(self.open) > depth:
            kind, top = self.open.pop()
            self.drawn.bars.append(Bar(_left(len(self.open)), top, self.y - 3, kind))

    def _loop(self, row: Row) -> None:
        _, depth, iterator, extent, varies, kind, annotation = row
        x = _left(int(str(depth)))
        self.open.append((str(kind), self.y + 5))
        self._text(x + 10, "iterator", str(iterator))
        size = "? times" if extent is None else f"{'~' if varies else ''}{_count(extent)}"
        note = " ".join(filter(None, (size, str(kind), str(annotation))))
        self._text(x + 10 + (len(str(iterator)) + 1) * CHARACTER, "note", note)

    def _statement(self, row: Row) -> None:
        x = _left(int(str(row[1]))) + (1 if row[1] else -6)
        lines = textwrap.wrap(str(row[2]), _fitting(x), subsequent_indent="  ") or [""]
        for number, line in enumerate(lines):
            self.y += ROW if number else 0
            self._text(x, "statement", line)

    def _access(self, row: Row) -> None:
        _, depth, text, kind, moves, footprint = row
        for loop, move in enumerate(str(moves)):
            _, style, path = MOVES[move]
            self.drawn.symbols.append(
                PictureSymbol(_left(loop), self.y + ROW / 2, self.open[loop][0], style, path)
            )
        size = bytes_text(float(str(footprint)))
        self._text(WIDTH, "note right", size)
        x = _left(int(str(depth))) + 10
        room = _fitting(x, WIDTH - (len(size) + 1) * CHARACTER)
        shown = f"{text}{SIGNS[str(kind)]}"
        shown = shown if len(shown) <= room else f"{shown[: room - 1]}…"
        self._text(x, f"access {kind}", shown)

    def _text(self, x: float, style: str, text: str) -> None:
        self.drawn.texts.append(Text(x, self.y + 13, style, text))


def _left(depth: int) -> float:
    return 8.0 + depth * INDENT


def _fitting(x: float, end: float = WIDTH) -> int:
    """Letters that have room between two places."""
    return max(6, int((end - x) / CHARACTER))


def _count(extent: object) -> str:
    value = float(str(extent))
    return f"{value:,.0f}" if value.is_integer() or value >= 1000 else f"{value:.3g}"
