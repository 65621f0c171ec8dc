"""What matplotlib draws, as part of a page."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.plots import plot_kernels

from gnnperf.report.benchmark import inline_svg

HOSTILE = "<script>alert(1)</script>"


def draw(path: Path) -> None:
    rows = [{"kernel": HOSTILE, "vs_numpy": 2.0, "vs_numpy_interval": [1.5, 2.5]}]
    plot_kernels(rows, ("numpy",), "a title", path)


def test_a_plot_in_the_colours_of_the_page() -> None:
    svg = inline_svg(draw, "p0-")
    assert svg.startswith("<svg")
    assert "var(--series-1)" in svg and "currentColor" in svg
    assert "style=" not in svg and "<style" not in svg and "<metadata" not in svg
    assert HOSTILE not in svg and "&lt;script&gt;" in svg


def test_plots_do_not_share_ids() -> None:
    first, second = (set(re.findall(r'id="([^"]+)"', inline_svg(draw, p))) for p in ("a-", "b-"))
    assert first and not first & second
    svg = inline_svg(draw, "a-")
    used = set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'href="#([^"]+)"', svg))
    assert used and used <= first
