"""One nest on its way through retrieval: what was asked, what came back, what was tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gnnperf.backends.cpp.cases import UnitCase
from gnnperf.frontends.dace import Unit
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Measurement
from gnnperf.retrieval.confidence import Confidence, Outcome
from gnnperf.retrieval.measured import report_neighbours, report_tried
from gnnperf.retrieval.ranking import Candidate
from gnnperf.retrieval.report import NestReport
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Neighbour

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
    search: Mapping[str, Any] | None = None
    """What a search of its own did, see `NestReport`; `tried` holds the best of it."""

    @property
    def measured(self) -> int:
        """How many candidates were measured."""
        if self.search is not None:
            return int(self.search["trials"])
        return sum(m.status != "not_applicable" for _, m in self.tried)

    def outcome(self) -> Outcome | None:
        """What measuring gave; None where nothing was measured."""
        shares = [
            1.0 / m.speedup if m.status == "ok" and m.speedup else None
            for _, m in self.tried
            if m.status != "not_applicable"
        ]
        return Outcome(self.graph, shares, self.case.baseline_s) if self.case and shares else None

    def report(self, k: int, schedule: Recipe | None, confidence: Confidence | None = None) -> NestReport:
        """What is said of the nest. schedule: what it was given in the tuned kernel."""
        baseline_s = self.case.baseline_s if self.case else None
        best_s = self.winner[1].runtime_s if self.winner else baseline_s
        shown: list[tuple[Candidate, Measurement | None]] = [*self.tried]
        shown = shown or [(candidate, None) for candidate in self.candidates[:k]]
        outcome = self.outcome()
        sure = confidence.probability(outcome) if confidence and outcome else None
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
            confidence=sure,
            confident=sure >= confidence.limit if confidence and sure is not None else None,
            candidates=[
                report_tried(rank, c, c.schedule.to_dict(), c.schedule.describe(), m)
                for rank, (c, m) in enumerate(shown, start=1)
            ],
            neighbours=report_neighbours(self.neighbours),
            search=self.search,
        )
