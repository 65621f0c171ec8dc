"""One task on its way through retrieval: what was asked, what came back, what was tried."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gnnperf.frontends.tvm import TvmTask
from gnnperf.measure import Measurement, speedup_interval
from gnnperf.measure.outcome import Outcome
from gnnperf.retrieval.measured import report_neighbours, report_tried
from gnnperf.retrieval.report import NestReport, Timing, comparison
from gnnperf.retrieval.tensor.candidates import TraceCandidate
from gnnperf.store import Neighbour


@dataclass
class TaskQuery:
    """number: of the task's module in the bench server. reason: why nothing was accepted; empty where it was.
    tried: the measured candidates that are told of. search: what a search of its own did, see `NestReport`.
    beside: other libraries' implementations, timed in turn with the best candidates."""

    task: TvmTask
    number: int
    neighbours: list[Neighbour] = field(default_factory=list)
    candidates: list[TraceCandidate] = field(default_factory=list)
    refused: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    baseline: Measurement | None = None
    tried: list[tuple[TraceCandidate, Measurement]] = field(default_factory=list)
    winner: tuple[TraceCandidate, Measurement] | None = None
    share: float | None = None
    search: Mapping[str, Any] | None = None
    beside: dict[str, Measurement] = field(default_factory=dict)

    @property
    def measured(self) -> int:
        """How many candidates were measured."""
        return self.search["trials"] if self.search else len(self.tried)

    @property
    def timings(self) -> tuple[Timing, Timing] | None:
        """Of one call of the baseline and of what is kept; None where nothing was measured."""
        if self.baseline is None:
            return None
        before = timing(self.baseline)
        return before, timing(self.winner[1]) if self.winner else before

    def report(self, k: int) -> NestReport:
        """What is said of the task. k: candidates shown where nothing was measured."""
        timings = self.timings
        accepted = self.winner[0] if self.winner else None
        shown: list[tuple[TraceCandidate, Measurement | None]] = [*self.tried]
        shown = shown or [(candidate, None) for candidate in self.candidates[:k]]
        return NestReport(
            name=self.task.name,
            digest=self.task.graph.digest,
            baseline_s=timings[0].runtime_s if timings else None,
            best_s=timings[1].runtime_s if timings else None,
            abstained=bool(self.reason) and not self.tried,
            reason=self.reason,
            accepted=as_schedule(accepted) if accepted else None,
            accepted_words=accepted.words if accepted else "",
            share=self.share,
            candidates=[
                report_tried(rank, c, as_schedule(c), c.words, m)
                for rank, (c, m) in enumerate(shown, start=1)
            ],
            neighbours=report_neighbours(self.neighbours, self.refused),
            search=self.search,
            beside=[comparison(name, m, timings and timings[1]) for name, m in self.beside.items()],
        )


def as_measurement(outcome: Outcome, baseline: Measurement | None = None) -> Measurement:
    """An outcome of the bench, beside the baseline's."""
    if outcome.status != "ok":
        return Measurement(outcome.status, detail=outcome.detail)
    found = Measurement.from_samples(outcome.samples_s)
    return found if baseline is None else beside(found, baseline)


def beside(found: Measurement, baseline: Measurement) -> Measurement:
    """The measurement with its speedup over a baseline."""
    assert found.runtime_s and found.interval_s and baseline.runtime_s and baseline.interval_s
    return replace(
        found,
        baseline_s=baseline.runtime_s,
        baseline_interval_s=baseline.interval_s,
        speedup=baseline.runtime_s / found.runtime_s,
        speedup_interval=speedup_interval(baseline.interval_s, found.interval_s),
    )


def timing(measurement: Measurement) -> Timing:
    assert measurement.runtime_s is not None and measurement.interval_s is not None
    return Timing(measurement.runtime_s, measurement.interval_s)


def as_schedule(candidate: TraceCandidate) -> dict[str, Any]:
    """The trace as a JSON object."""
    return {"kind": "trace", **json.loads(candidate.document.to_json())}
