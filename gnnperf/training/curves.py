"""Learning curves of a run, as a picture."""

from __future__ import annotations

import csv
from pathlib import Path

from gnnperf.figures import figure

PANELS = (
    ("loss, nats", ("train/loss", "val/loss")),
    ("contrastive loss, nats", ("train/contrastive_loss", "val/contrastive_loss")),
    ("efficiency loss, nats", ("train/efficiency_loss", "val/efficiency_loss")),
    ("held-out efficiency", ("val/efficiency@1", "val/efficiency@3")),
)
"""Axis label and columns of `metrics.csv` of each panel."""


def draw_curves(folder: Path) -> Path | None:
    """Draw `metrics.csv` of a run folder to `curves.png` beside it; None where there is no such file."""
    try:
        with (folder / "metrics.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return None
    path = folder / "curves.png"
    with figure(path, 10, 6) as picture:
        for axes, (label, names) in zip(picture.subplots(2, 2).flat, PANELS, strict=True):
            for name in names:
                points = [(int(row["epoch"]), float(row[name])) for row in rows if row.get(name)]
                if points:
                    axes.plot(*zip(*points, strict=True), label=name)
            axes.set(xlabel="epoch", ylabel=label)
            if axes.lines:
                axes.legend(frameon=False)
            axes.spines[["top", "right"]].set_visible(False)
    return path
