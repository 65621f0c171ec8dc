"""The picture of a case study: how much faster than each competitor, kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLOURS = ("#1f4e79", "#b45f06", "#38761d")


def plot(rows: Sequence[Mapping[str, Any]], competitors: Sequence[str], title: str, path: Path) -> None:
    """Bars of speedups on a logarithmic axis with their 95% intervals; the suffix of `path` chooses the
    format. A competitor that was not measured has no bar."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gnnperf", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(1.5 + 0.9 * len(rows), 4.2), layout="constrained")
        axes = figure.add_subplot()
        width = 0.8 / len(competitors)
        for c, name in enumerate(competitors):
            known = [(r, row) for r, row in enumerate(rows) if row[f"vs_{name}"]]
            heights = [row[f"vs_{name}"] for _, row in known]
            ends = [row[f"vs_{name}_interval"] for _, row in known]
            whiskers = [
                [max(0.0, h - lo) for h, (lo, _) in zip(heights, ends, strict=True)],
                [max(0.0, hi - h) for h, (_, hi) in zip(heights, ends, strict=True)],
            ]
            places = [r + (c - (len(competitors) - 1) / 2) * width for r, _ in known]
            # Bars grow from 1, so that a bar that hangs down is a loss.
            axes.bar(
                places, [h - 1 for h in heights], width, bottom=1, color=COLOURS[c], label=name,
                yerr=whiskers, ecolor="#555555", capsize=2,
            )  # fmt: skip
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}x")
        axes.set_ylabel("speedup over")
        axes.set_xticks(range(len(rows)), [row["kernel"] for row in rows], rotation=30, ha="right")
        axes.set_title(title)
        axes.legend(frameon=False)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
