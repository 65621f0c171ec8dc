"""Which recipes of other nests to measure on a nest, so that the measurements say most.

Learning and replay compare nests by recipes that both have measured, so most of what is measured across
is a portfolio, the same for all nests; the rest is what suited the nests most like this one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from gnnperf.corpus.nest_records import speedup_of
from gnnperf.schedules.recipes import DEFAULTS, Recipe

Line = Mapping[str, Any]
Measured = Mapping[str, Mapping[str, Line]]
"""digest -> schedule id -> line of a record."""

UNKNOWN = math.log(0.5)
"""ln efficiency where nothing of a portfolio is known to do better."""


def choose_portfolio(
    nests: Mapping[str, Line], measured: Measured, count: int, start: Sequence[Recipe] = ()
) -> list[Recipe]:
    """`start` and further recipes, up to `count`, that together do best on all nests.

    Greedy: each is the one that, beside DEFAULTS and those before it, most raises the mean over nests of
    the best ln(efficiency), every family counting the same. Ends early when nothing raises it.
    """
    digests = [d for d in nests if best_of(measured.get(d, {}).values())]
    recipes = {line["schedule_id"]: line["schedule"] for d in digests for line in measured[d].values()}
    column = {recipe: i for i, recipe in enumerate(sorted(recipes))}
    efficiency = np.full((len(digests), len(column)), -np.inf)
    for row, digest in enumerate(digests):
        good = {k: speedup_of(m) for k, m in measured[digest].items() if m["status"] == "ok"}
        for recipe, speedup in good.items():
            efficiency[row, column[recipe]] = math.log(speedup / max(good.values()))
    sizes = Counter(nests[d]["family"] for d in digests)
    weight = np.array([1 / sizes[nests[d]["family"]] for d in digests])
    chosen = list(start)
    known = [column[r.id] for r in (*DEFAULTS, *chosen) if r.id in column]
    reached = np.max(efficiency[:, known], axis=1, initial=UNKNOWN)
    ids = list(column)
    while len(chosen) < count and ids:
        gains = weight @ np.maximum(efficiency - reached[:, None], 0.0)
        best_at = int(np.argmax(gains))
        if not gains[best_at] > 0:
            break
        chosen.append(Recipe.from_dict(recipes[ids[best_at]]))
        reached = np.maximum(reached, efficiency[:, best_at])
    return chosen


def of_like_nests(
    digest: str, nests: Mapping[str, Line], measured: Measured, exclude: Collection[str], count: int
) -> list[Recipe]:
    """The best recipes of the `count` nests most like this one whose ids are not in `exclude`."""
    own = _signature(nests[digest]["graph"])
    others = []
    for other, nest in nests.items():
        best = best_of(measured.get(other, {}).values())
        if other != digest and best is not None and best["schedule_id"] not in exclude:
            unlike = sum(abs(a - b) for a, b in zip(own, _signature(nest["graph"]), strict=True))
            others.append((unlike, other, best))
    found = {best["schedule_id"]: best["schedule"] for _, _, best in sorted(others, key=lambda o: o[:2])}
    return [Recipe.from_dict(schedule) for schedule in list(found.values())[:count]]


def best_of(lines: Collection[Line]) -> Line | None:
    """The fastest of a nest's measurements, or None where none succeeded."""
    return max((m for m in lines if m["status"] == "ok"), key=speedup_of, default=None)


def _signature(graph: Mapping[str, Any]) -> tuple[float, ...]:
    """Counts of node kinds and loop kinds: a coarse likeness that needs no model."""
    kinds = Counter(node["kind"] for node in graph["nodes"])
    loop_kinds = Counter(node["features"].get("loop_kind") for node in graph["nodes"])
    return (
        *(float(kinds[kind]) for kind in ("loop", "buffer", "access", "compute")),
        *(2.0 * loop_kinds[kind] for kind in ("spatial", "reduction", "sequential", "data-dependent")),
    )
