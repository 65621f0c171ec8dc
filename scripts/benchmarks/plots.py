"""Pictures of tables: speedups over others, with their 95% intervals. The suffix of a path is its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnnperf.figures import figure

Row = Mapping[str, Any]

COLOURS = ("#1f4e79", "#b45f06", "#38761d")
PATHS = {"mkl_shipped": ("#b45f06", 0.15), "mkl_fastest": ("#1f4e79", -0.15)}
"""Code path of MKL -> colour, and shift of its points."""
BEST_KNOWN = "#888888"


def plot_kernels(rows: Sequence[Row], competitors: Sequence[str], title: str, path: Path) -> None:
    """Bars of speedups, kernel by kernel. A competitor that was not measured has no bar."""
    with figure(path, 1.5 + 0.9 * len(rows), 4.2) as picture:
        axes = picture.add_subplot()
        width = 0.8 / len(competitors)
        for c, name in enumerate(competitors):
            places, heights, whiskers = _speedups(rows, name)
            # Bars grow from 1, so that a bar that hangs down is a loss.
            axes.bar(
                [place + (c - (len(competitors) - 1) / 2) * width for place in places],
                [h - 1 for h in heights], width, bottom=1, color=COLOURS[c], label=name, yerr=whiskers,
                ecolor="#555555", capsize=2,
            )  # fmt: skip
        _ratio_axis(axes)
        axes.set_ylabel("speedup over")
        axes.set_xticks(range(len(rows)), [row["kernel"] for row in rows], rotation=30, ha="right")
        axes.set_title(title)
        axes.legend(frameon=False)


def plot_products(rows: Sequence[Row], title: str, path: Path) -> None:
    """Speedups of sparse products over both code paths of MKL. A panel per size and dtype; in it, structures
    by number of columns F, and the best known schedule over MKL's fastest path where it was measured."""
    panels = list(dict.fromkeys((row["size"], row["dtype"]) for row in rows))
    with figure(path, 11, 1.2 + 2.6 * len(panels)) as picture:
        grid = picture.subplots(len(panels), 1, sharey=True, squeeze=False)
        for axes, panel in zip(grid[:, 0], panels, strict=True):
            _products(axes, [row for row in rows if (row["size"], row["dtype"]) == panel])
            axes.set_title(f"{panel[1]}, {panel[0].replace('_', ' ')}", loc="left", fontsize="medium")
        grid[0, 0].legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
        picture.suptitle(title)


def _products(axes: Any, rows: Sequence[Row]) -> None:
    for name, (colour, shift) in PATHS.items():
        places, heights, whiskers = _speedups(rows, name)
        axes.errorbar(
            [place + shift for place in places], heights, whiskers, fmt="o", markersize=4, capsize=2,
            color=colour, label=f"ours over {name.replace('_', ', as ' if 'ship' in name else ', ')}",
        )  # fmt: skip
    best = [(place, row["oracle_vs_mkl_fastest"]) for place, row in enumerate(rows)]
    best = [(place, height) for place, height in best if height]
    if best:
        shift = PATHS["mkl_fastest"][1]
        axes.plot(
            [place + shift for place, _ in best], [height for _, height in best], "_", markersize=9,
            color=BEST_KNOWN, label="best known over mkl, fastest",
        )  # fmt: skip
    _ratio_axis(axes)
    axes.yaxis.set_minor_formatter("{x:g}x")
    names = [f"{row['structure']} {row['features']}" for row in rows]
    axes.set_xticks(range(len(rows)), names, rotation=45, ha="right")
    axes.tick_params(axis="x", labelsize="small")
    axes.tick_params(axis="y", which="both", labelsize="small")


def _speedups(rows: Sequence[Row], name: str) -> tuple[list[int], list[float], list[list[float]]]:
    """(places of the rows that have one, speedups, distances to the lower and the upper ends)."""
    known = [(place, row[f"vs_{name}"], row[f"vs_{name}_interval"]) for place, row in enumerate(rows)]
    known = [found for found in known if found[1]]
    whiskers = [
        [max(0.0, height - lo) for _, height, (lo, _) in known],
        [max(0.0, hi - height) for _, height, (_, hi) in known],
    ]
    return [place for place, *_ in known], [height for _, height, _ in known], whiskers


def _ratio_axis(axes: Any) -> None:
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}x")
