"""A corpus of which every policy's answers are known, made up for the tests of the replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.synthetic import measurement, nest, nest_like, write_corpus

OPERATIONS = ("add", "mul", "exp", "div")
GOOD, FAIR, OWN = 0.25, 0.5, 0.125
PROFILE = {"runtime_s": 1e-3, "runtime_1_thread_s": 2e-3, "flops_share": 0.1, "bandwidth_share": 0.2}


def line(digest: str, schedule: str, runtime_s: float | None, **changes: Any) -> dict[str, Any]:
    """A measurement that differs in its last digits from all others, as those of other code do, of a
    schedule that is a default, if nothing else is said."""
    unlike = None if runtime_s is None else runtime_s * (1 + 1e-6 * sum(map(ord, schedule)))
    return measurement(digest, schedule, unlike, **{"origin": "default", **changes})


def two_tastes(folder: Path, own: Sequence[tuple[str, float]] = (), sizes: Sequence[int] = (64, 128)) -> Path:
    """Eight families in some sizes: "map_*" nests want schedule "stream", "reduce_*" nests "tile".

    On all nests: "tile" and "stream" work (`GOOD` or `FAIR`), "wrong" fails, "unfit" does not apply. `own`:
    (origin, runtime) of the schedules that each nest's own search tried, which no other nest knows.
    """
    nests, lines = [], []
    for reduction in (False, True):
        for operation in OPERATIONS:
            for size in sizes:
                graph = nest_like([size, size // 2], reduction, operation)
                kernel = f"{'reduce' if reduction else 'map'}_{operation}"
                profile = {**PROFILE, "runtime_s": 1e-6 * size}
                nests.append(nest(graph, kernel, parameters={"N": size}, profile=profile))
                liked, other = ("tile", "stream") if reduction else ("stream", "tile")
                lines += [line(graph.digest, liked, GOOD), line(graph.digest, other, FAIR)]
                lines += [line(graph.digest, "wrong", None)]
                lines += [line(graph.digest, "unfit", None, status="not_applicable")]
                lines += [
                    line(graph.digest, f"{kernel}_{size}_{at}", runtime_s, origin=origin)
                    for at, (origin, runtime_s) in enumerate(own)
                ]
    return write_corpus(folder, nests, lines)
