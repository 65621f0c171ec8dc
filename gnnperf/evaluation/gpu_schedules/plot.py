"""Pictures of the study: how good the first five are, and runtimes against predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from gnnperf.figures import figure

SERIES = {
    "top5": "#1f4e79", "portfolio_top5": "#b45f06", "geomean_rank_top5": "#6aa84f", "random_top5": "#888888",
}  # fmt: skip


def plot_efficiency(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Best of five over the optimum, table by table, of GPUs held out, beside simple ways."""
    mine = [row for row in rows if row["held_out"] == "gpu"]
    with figure(path, 11, 4.5) as picture:
        axes = picture.subplots()
        for i, (name, colour) in enumerate(SERIES.items()):
            label = {"top5": "ours"}.get(name, name.removesuffix("_top5").replace("_", " "))
            places = [x + 0.2 * (i - 1.5) for x in range(len(mine))]
            axes.bar(places, [row[name] or 0.0 for row in mine], 0.2, color=colour, label=label)
        names = [f"{row['space']}\n{row['gpu']}" for row in mine]
        axes.set_xticks(range(len(mine)), names, rotation=60, ha="right", fontsize="small")
        axes.set_ylabel("best of five / optimum, GPU held out")
        axes.legend(frameon=False, ncols=4, loc="lower left")


def plot_errors(errors: Mapping[tuple[str, str], Float64[np.ndarray, " n"]], path: Path) -> None:
    """Measured over predicted runtimes of GPUs held out: 10th, 50th and 90th percentile by table."""
    with figure(path, 11, 4.5) as picture:
        axes = picture.subplots()
        low, middle, high = (np.exp2([np.quantile(e, q) for e in errors.values()]) for q in (0.1, 0.5, 0.9))
        axes.errorbar(range(len(errors)), middle, [middle - low, high - middle], fmt="o", capsize=3)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_yscale("log", base=2)
        names = [f"{space}\n{gpu}" for space, gpu in errors]
        axes.set_xticks(range(len(errors)), names, rotation=60, ha="right", fontsize="small")
        axes.set_ylabel("measured / predicted runtime")


def plot_distance(rows: Sequence[Mapping[str, Any]], nominal: float, path: Path) -> None:
    """Tables of GPUs held out, by kernel: coverage of the intervals, error of runtimes and best of five over
    the doublings to the most similar GPU that was learned from."""
    mine = [row for row in rows if row["held_out"] == "gpu"]
    panels = (
        ("coverage80", f"share inside the {nominal:.0%} interval"),
        ("runtime_mdape_0", "median error of runtimes, no run"),
        ("top5", "best of five / optimum"),
    )
    with figure(path, 13, 4.2) as picture:
        for axes, (column, label) in zip(picture.subplots(1, 3), panels, strict=True):
            for i, kernel in enumerate(sorted({row["kernel"] for row in mine})):
                of = [row for row in mine if row["kernel"] == kernel and row[column] is not None]
                places = [row["distance"] for row in of], [row[column] for row in of]
                axes.plot(*places, "o", color=f"C{i}", label=kernel)
            axes.set(xlabel="doublings to the most similar GPU", ylabel=label, ylim=(0, None))
            if column == "coverage80":
                axes.axhline(nominal, color="black", linewidth=0.8)
                axes.legend(frameon=False)
