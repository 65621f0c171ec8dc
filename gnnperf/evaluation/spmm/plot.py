"""The picture of the study: speedup over both code paths of MKL, product by product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLOURS = {"mkl_fastest": "#1f4e79", "mkl_shipped": "#b45f06", "oracle": "#888888"}


def plot(rows: Sequence[Mapping[str, Any]], title: str, path: Path) -> None:
    """A panel per size and dtype; in it, structures by number of columns F, each with its speedups over MKL
    and their 95% intervals, and the best known schedule over MKL's fastest path where it was measured. The
    suffix of `path` chooses the format."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys((row["size"], row["dtype"]) for row in rows))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gnnperf", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(11, 1.2 + 2.6 * len(panels)), layout="constrained")
        grid = figure.subplots(len(panels), 1, sharey=True, squeeze=False)
        for axes, panel in zip(grid[:, 0], panels, strict=True):
            here = [row for row in rows if (row["size"], row["dtype"]) == panel]
            _panel(axes, here)
            axes.set_title(f"{panel[1]}, {panel[0].replace('_', ' ')}", loc="left", fontsize="medium")
        grid[0, 0].legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
        figure.suptitle(title)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(axes: Any, rows: Sequence[Mapping[str, Any]]) -> None:
    for name, shift in (("mkl_shipped", 0.15), ("mkl_fastest", -0.15)):
        known = [(place, row) for place, row in enumerate(rows) if row[f"vs_{name}"]]
        heights = [row[f"vs_{name}"] for _, row in known]
        ends = [row[f"vs_{name}_interval"] for _, row in known]
        errors = [
            [max(0.0, height - lo) for height, (lo, _) in zip(heights, ends, strict=True)],
            [max(0.0, hi - height) for height, (_, hi) in zip(heights, ends, strict=True)],
        ]
        axes.errorbar(
            [place + shift for place, _ in known], heights, errors, fmt="o", markersize=4, capsize=2,
            color=COLOURS[name], label=f"ours over {name.replace('_', ', as ' if 'ship' in name else ', ')}",
        )  # fmt: skip
    best = {place - 0.15: row["oracle_vs_mkl_fastest"] for place, row in enumerate(rows)}
    best = {place: height for place, height in best.items() if height}
    if best:
        axes.plot(
            list(best), list(best.values()), "_", markersize=9, color=COLOURS["oracle"],
            label="best known over mkl, fastest",
        )  # fmt: skip
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}x")
    axes.yaxis.set_minor_formatter("{x:g}x")
    names = [f"{row['structure']} {row['features']}" for row in rows]
    axes.set_xticks(range(len(rows)), names, rotation=45, ha="right")
    axes.tick_params(axis="x", labelsize="small")
    axes.tick_params(axis="y", which="both", labelsize="small")
