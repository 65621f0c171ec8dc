"""One task on its way through retrieval: what was asked, what came back, what was tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.backends.base import Candidate, Tried
from gnnperf.frontends.base import Task
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Measurement, Timing
from gnnperf.retrieval.confidence import Confidence, TrialOutcome
from gnnperf.retrieval.report import NestReport, TriedReport, comparison
from gnnperf.schedules import Schedule
from gnnperf.store import Neighbour

_AS_FAST = "no faster alone, but the whole kernel is fastest with it"


@dataclass
class Query:
    """One task on its way through retrieval.

    number: its place among the program's tasks. vector: f32[d], its embedding. refused: why nothing of a
    neighbour fits, by its kernel. reason: why nothing was accepted; empty where something was. baseline: of
    one call. alike: an earlier one whose task has the same graph, which is measured for both; measured_for:
    so many tasks. share: of the program's runtime, before anything was tuned; passed_over: that was too
    small. asked: for candidates. tried: measured candidates, all or the best of them. search: what a search
    did, see `NestReport`. competitors: other implementations, timed in turn with the best candidates, by
    name.
    """

    task: Task
    graph: ProgramGraph
    number: int = 0
    vector: NDArray[np.float32] | None = None
    neighbours: list[Neighbour] = field(default_factory=list)
    candidates: list[Any] = field(default_factory=list)
    refused: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    baseline: Timing | None = None
    baseline_name: str = ""
    baseline_note: str = ""
    alike: Query | None = None
    measured_for: int = 1
    share: float | None = None
    asked: bool = False
    passed_over: bool = False
    tried: list[Tried] = field(default_factory=list)
    winner: Tried | None = None
    search: Mapping[str, Any] | None = None
    competitors: Mapping[str, Measurement] = field(default_factory=dict)

    @property
    def measured(self) -> int:
        """How many candidates were measured."""
        if self.search is not None:
            return int(self.search["trials"])
        return sum(m.status != "not_applicable" for _, m in self.tried)

    @property
    def best(self) -> Timing | None:
        """Of one call of what is kept; None where nothing was measured."""
        return self.winner[1].timing if self.winner else self.baseline

    @property
    def spent_s(self) -> float:
        """By all calls of the baseline; 0 where it was not measured."""
        return self.baseline.runtime_s * (self.task.calls or 1) if self.baseline else 0.0

    @property
    def saved_s(self) -> float:
        """By all calls of the winner."""
        kept_s = self.best.runtime_s * (self.task.calls or 1) if self.best else 0.0
        return max(0.0, self.spent_s - kept_s)

    def outcome(self) -> TrialOutcome | None:
        """What measuring gave; None where nothing was measured."""
        shares = [
            1.0 / m.speedup if m.status == "ok" and m.speedup else None
            for _, m in self.tried
            if m.status != "not_applicable"
        ]
        return TrialOutcome(self.graph, shares, self.baseline.runtime_s) if self.baseline and shares else None

    def report(self, k: int, schedule: Schedule | None, confidence: Confidence | None = None) -> NestReport:
        """What is said of the task. k: candidates shown where nothing was measured. schedule: what it was
        given in the tuned program."""
        shown: list[tuple[Candidate, Measurement | None]] = [*self.tried]
        shown = shown or [(candidate, None) for candidate in self.candidates[:k]]
        outcome = self.outcome()
        sure = confidence.probability(outcome) if confidence and outcome else None
        words = self.winner[0].words if self.winner else schedule.describe() if schedule else ""
        return NestReport(
            name=self.task.name,
            digest=self.graph.digest,
            baseline_s=self.baseline.runtime_s if self.baseline else None,
            baseline_name=self.baseline_name,
            baseline_note=self.baseline_note,
            best_s=self.best.runtime_s if self.best else None,
            abstained=bool(self.reason) and not self.tried,
            reason=_AS_FAST if schedule and not self.winner else self.reason,
            accepted=schedule.to_dict() if schedule else None,
            accepted_words=words if schedule else "",
            share=self.share,
            confidence=sure,
            confident=sure >= confidence.limit if confidence and sure is not None else None,
            candidates=[TriedReport.of(rank, c, m) for rank, (c, m) in enumerate(shown, start=1)],
            neighbours=_neighbours(self.neighbours, self.refused),
            search=self.search,
            beside=[comparison(name, m, self.best) for name, m in self.competitors.items()],
        )


def _neighbours(found: Sequence[Neighbour], refused: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """What is said of neighbours."""
    lines: list[Mapping[str, Any]] = []
    for near in found:
        nest, why = near.nest, refused.get(near.nest.kernel)
        line = {
            "digest": nest.digest,
            "kernel": nest.kernel,
            "family": nest.family,
            "distance": near.distance,
        }
        lines.append({**line, "refused": why} if why else line)
    return lines
