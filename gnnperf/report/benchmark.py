"""The page of a benchmark: headline figures, plots, the table, and what it was run with."""

from __future__ import annotations

import re
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gnnperf.evaluation import BenchmarkResult
from gnnperf.report.page import render
from gnnperf.report.words import is_number


def benchmark_page(
    result: BenchmarkResult,
    shown: Sequence[Mapping[str, Any]] | None = None,
    plots: Mapping[str, Callable[[Path], None]] | None = None,
) -> str:
    """HTML of a benchmark.

    Args:
        result: what it found.
        shown: shorter rows for the table; the whole ones are behind a fold then.
        plots: by caption, functions that write a plot to a path ending in .svg.
    """
    wanted = plots if plots and result.rows else {}
    drawn = [(caption, inline_svg(draw, f"plot{i}-")) for i, (caption, draw) in enumerate(wanted.items())]
    return render(
        "benchmark.html",
        f"gnnperf: {result.benchmark}",
        result=result,
        plots=drawn,
        table=_table(result.rows if shown is None else shown),
        whole=None if shown is None else _table(result.rows),
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """names: of the columns, and whether each is one of numbers. rows: their values."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "columns": [(name, all(is_number(row.get(name)) for row in rows)) for name in names],
        "rows": [[row.get(name) for name in names] for row in rows],
    }


_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_COLOURS = {
    "#000000": "currentColor", "black": "currentColor", "#ffffff": "none", "#1f4e79": "var(--series-1)",
    "#b45f06": "var(--series-2)", "#38761d": "var(--series-3)", "#6aa84f": "var(--series-3)",
    "#888888": "var(--muted)", "#555555": "var(--muted)", "#1f77b4": "var(--series-1)",
    "#ff7f0e": "var(--series-2)", "#2ca02c": "var(--series-3)", "#d62728": "var(--series-4)",
    "#9467bd": "var(--series-5)",
}  # fmt: skip
"""Ink and paper of a plot, and the colours of its series, as those of the page: light or dark."""
_KEPT = {
    "fill", "fill-opacity", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray",
    "stroke-dashoffset", "stroke-opacity", "opacity", "text-anchor", "clip-path", "clip-rule",
    "stroke-miterlimit", "font-size", "font-weight",
}  # fmt: skip
"""What may stand as an attribute of its own: style attributes are not allowed on the page."""


def inline_svg(draw: Callable[[Path], None], prefix: str) -> str:
    """What `draw(path)` writes to an .svg file, as an element for a page; what is text in it stays text.

    prefix: of its ids, so that several plots do not share theirs.
    """
    with tempfile.TemporaryDirectory(prefix="gnnperf-plot-") as folder:
        path = Path(folder) / "plot.svg"
        draw(path)
        root = ET.parse(path).getroot()
    _clean(root, prefix)
    root.set("class", "plot")
    root.set("role", "img")
    root.attrib.pop("height", None)
    ET.register_namespace("", _SVG.strip("{}"))
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    return ET.tostring(root, encoding="unicode")


def _clean(root: ET.Element, prefix: str) -> None:
    for parent in root.iter():
        for child in list(parent):
            # A style sheet of its own, and metadata with addresses that nobody is to fetch.
            if child.tag == f"{_SVG}style" or child.tag.endswith(("metadata", "}title")):
                parent.remove(child)
    for element in root.iter():
        _attributes(element, _declarations(element.attrib.pop("style", "")), prefix)


def _declarations(style: str) -> Iterable[tuple[str, str]]:
    for part in filter(None, map(str.strip, style.split(";"))):
        name, _, value = part.partition(":")
        name, value = name.strip(), value.strip()
        if name == "font":  # "10px 'DejaVu Sans', sans-serif": the family is the page's
            size = re.search(r"[\d.]+px", value)
            yield "font-size", size[0] if size else "10px"
        elif name in _KEPT:
            yield name, value


def _attributes(element: ET.Element, declared: Iterable[tuple[str, str]], prefix: str) -> None:
    for name, value in declared:
        element.set(name, value)
    for name, value in list(element.attrib.items()):
        if name == "id":
            element.set(name, prefix + value)
        elif name == _LINK and value.startswith("#"):
            element.set(name, f"#{prefix}{value[1:]}")
        elif "url(#" in value:
            element.set(name, value.replace("url(#", f"url(#{prefix}"))
        elif name in ("fill", "stroke"):
            element.set(name, _COLOURS.get(value.lower(), value))
    if element.tag == f"{_SVG}text" and "fill" not in element.attrib:
        element.set("fill", "currentColor")
