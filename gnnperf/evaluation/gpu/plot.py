"""Pictures of predictions on GPUs that were left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gnnperf.evaluation.gpu.operators import LEVEL, Points
from gnnperf.figures import figure

POINTS_SHOWN = 400
"""Of one GPU and family, at most: more would hide one another."""


def plot_operators(points: Points, rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Predicted against measured, coverage of the 80% intervals, and error by distance of the GPU; the suffix
    of `path` chooses the format."""
    with figure(path, 14, 4.4) as picture:
        scatter, cover, distance = picture.subplots(1, 3)
        random = np.random.default_rng(0)
        families = sorted(set(points.family.tolist()))
        colour = {name: f"C{i}" for i, name in enumerate(families)}
        for name in families:
            mine = np.flatnonzero(points.family == name)
            mine = random.permutation(mine)[: POINTS_SHOWN * len(points.distance)]
            scatter.plot(
                points.measured_s[mine] * 1e3, points.predicted_s[mine] * 1e3, ".", markersize=2,
                color=colour[name], label=name, rasterized=True,
            )  # fmt: skip
        ends = [float(points.measured_s.min()) * 1e3, float(points.measured_s.max()) * 1e3]
        scatter.plot(ends, ends, color="black", linewidth=0.8)
        scatter.set(xscale="log", yscale="log", xlabel="measured, ms", ylabel="predicted, ms")
        scatter.legend(frameon=False, markerscale=5)
        devices = list(points.distance)
        for name in families:
            of = {row["device"]: row for row in rows if row["family"] == name}
            places = [i for i, device in enumerate(devices) if device in of]
            cover.plot(places, [of[devices[i]]["coverage80"] for i in places], "o", color=colour[name])
            distance.plot(
                [points.distance[devices[i]] for i in places], [of[devices[i]]["mape"] for i in places], "o",
                color=colour[name], label=name,
            )  # fmt: skip
        cover.axhline(LEVEL, color="black", linewidth=0.8)
        cover.set(ylabel="share inside the 80% interval", ylim=(0, 1.02))
        cover.set_xticks(range(len(devices)), devices, rotation=35, ha="right")
        distance.set(
            xlabel="doublings to the most similar GPU", ylabel="mean absolute error, %", ylim=(0, None)
        )
