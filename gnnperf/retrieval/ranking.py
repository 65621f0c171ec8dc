"""Which schedules to try on a nest, in which order, from what its neighbours measured.

Every schedule that a neighbour measured gets a score: the average, over the neighbours that know it,
of ln(its speed on the neighbour / the best speed on the neighbour), weighted by likeness. A schedule
unknown to a neighbour is worth `UNKNOWN` there, so one lucky measurement far away does not win. This is
kernel regression of log-efficiency (Nadaraya-Watson) in the embedding space.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gnnperf.schedules import Recipe
from gnnperf.store import Neighbour, Record

BANDWIDTH = 0.05
"""Distance at which a neighbour's weight has fallen to 1/e (cosine distance)."""
UNKNOWN = math.log(0.5)
"""ln efficiency assumed where a neighbour did not measure a schedule."""
FAILURE = math.log(0.05)
"""ln efficiency of a schedule that failed on a neighbour."""


@dataclass(frozen=True)
class Candidate:
    """A schedule to try. `neighbour` is the nearest nest that vouches for it."""

    schedule: Recipe
    score: float
    neighbour: str
    neighbour_kernel: str
    distance: float
    neighbour_speedup: float | None


@dataclass
class _Evidence:
    weighted: float = 0.0
    weight: float = 0.0
    first: tuple[Neighbour, float | None] | None = None


def rank(neighbours: Sequence[Neighbour], limit: int) -> list[Candidate]:
    """The `limit` schedules with the highest scores, best first. `neighbours` nearest first."""
    if not neighbours:
        return []
    nearest = neighbours[0].distance
    weights = [math.exp(-(n.distance - nearest) / BANDWIDTH) for n in neighbours]
    total = sum(weights)
    evidence: dict[str, _Evidence] = {}
    for neighbour, weight in zip(neighbours, weights, strict=True):
        for schedule, (efficiency, speedup) in log_efficiencies(neighbour.records).items():
            found = evidence.setdefault(schedule, _Evidence())
            found.weighted += weight * efficiency
            found.weight += weight
            if found.first is None and speedup is not None:
                found.first = (neighbour, speedup)
    candidates = []
    for schedule, found in evidence.items():
        if found.first is None:  # it failed wherever it was tried
            continue
        neighbour, speedup = found.first
        score = (found.weighted + (total - found.weight) * UNKNOWN) / total
        candidates.append(
            Candidate(
                Recipe.from_dict(json.loads(schedule)),
                score,
                neighbour.nest.digest,
                neighbour.nest.kernel,
                neighbour.distance,
                speedup,
            )
        )
    return sorted(candidates, key=lambda c: (-c.score, c.distance, c.schedule.id))[:limit]


def log_efficiencies(records: Iterable[Record]) -> dict[str, tuple[float, float | None]]:
    """schedule -> (ln(best speedup / its speedup) <= 0, its speedup) of one nest's records.

    Speedups over the interleaved baseline are compared, not runtimes: they do not drift with the
    machine's clock. Of repeated measurements the best counts; failures count as `FAILURE`. Schedules
    that are no recipes (traces, configs) are passed over."""
    speedups: dict[str, float | None] = {}
    for record in records:
        if record.schedule_kind != "recipe":
            continue
        old = speedups.get(record.schedule)
        if record.status == "ok" and record.speedup is not None:
            speedups[record.schedule] = max(record.speedup, old or 0.0)
        else:
            speedups.setdefault(record.schedule, None)
    best = max((s for s in speedups.values() if s is not None), default=1.0)
    return {k: (FAILURE if s is None else max(FAILURE, math.log(s / best)), s) for k, s in speedups.items()}
