"""One nest on its way through retrieval: what was asked, what came back, what was tried."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gnnperf.frontends.dace import Unit
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Measurement
from gnnperf.retrieval.ranking import Candidate
from gnnperf.retrieval.report import NestReport, Tried
from gnnperf.schedules import Recipe
from gnnperf.store import Neighbour
from gnnperf.tuning.cases import UnitCase

_AS_FAST = "no faster alone, but the whole kernel is fastest with it"


@dataclass
class Query:
    """One nest on its way through retrieval."""

    unit: Unit
    graph: ProgramGraph
    neighbours: list[Neighbour] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    reason: str = ""
    """Why it is abstained from; empty where it is not."""
    case: UnitCase | None = None
    share: float | None = None
    """Of the kernel's runtime that it takes, once it was measured."""
    tried: list[tuple[Candidate, Measurement]] = field(default_factory=list)
    winner: tuple[Candidate, Measurement] | None = None

    def report(self, k: int, schedule: Recipe | None) -> NestReport:
        """What is said of the nest. schedule: what it was given in the tuned kernel."""
        baseline_s = self.case.baseline_s if self.case else None
        best_s = self.winner[1].runtime_s if self.winner else baseline_s
        shown: list[tuple[Candidate, Measurement | None]] = [*self.tried]
        shown = shown or [(candidate, None) for candidate in self.candidates[:k]]
        return NestReport(
            name=self.unit.nest.name,
            digest=self.graph.digest,
            baseline_s=baseline_s,
            best_s=best_s,
            abstained=bool(self.reason) and not self.tried,
            reason=_AS_FAST if schedule and not self.winner else self.reason,
            accepted=schedule.to_dict() if schedule else None,
            accepted_words=schedule.describe() if schedule else "",
            share=self.share,
            candidates=[_tried(rank, *pair) for rank, pair in enumerate(shown, start=1)],
            neighbours=[
                {
                    "digest": n.nest.digest,
                    "kernel": n.nest.kernel,
                    "family": n.nest.family,
                    "distance": n.distance,
                }
                for n in self.neighbours
            ],
        )


def _tried(rank: int, candidate: Candidate, measurement: Measurement | None) -> Tried:
    tried = Tried(
        rank=rank,
        neighbour=candidate.neighbour,
        neighbour_kernel=candidate.neighbour_kernel,
        distance=candidate.distance,
        score=candidate.score,
        schedule=candidate.schedule.to_dict(),
        words=candidate.schedule.describe(),
        status="not_measured",
    )
    if measurement is None:
        return tried
    return replace(
        tried,
        status=measurement.status,
        speedup=measurement.speedup,
        speedup_interval=measurement.speedup_interval,
        runtime_s=measurement.runtime_s,
        detail=measurement.detail,
    )
