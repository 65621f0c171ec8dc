"""`gnnperf tune` of TVM kernels: MetaSchedule's own search, which starts from what retrieval finds.

tasks -> neighbours -> their traces, transferred and ranked -> the first of them measured, and with what the
user's store knows of the task already they become the search's database, from which its populations grow and
its cost model learns -> every round's measurements go to the store -> the best in turn with the unscheduled
function, as in `transfer`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gnnperf.backends.tvm.server import BenchServer
from gnnperf.corpus.traces import BASELINE
from gnnperf.errors import InputError, NotApplicable
from gnnperf.frontends.tvm.spaces import Space, seed_of
from gnnperf.frontends.tvm.vector_math import vector_math
from gnnperf.measure import Measurement
from gnnperf.measure.interleaved import Pace
from gnnperf.measure.outcome import Outcome
from gnnperf.retrieval.tensor.candidates import TraceCandidate, of_schedule
from gnnperf.retrieval.tensor.query import TaskQuery, as_measurement
from gnnperf.retrieval.tensor.quiet import quiet
from gnnperf.retrieval.tensor.records import add_tried
from gnnperf.retrieval.tensor.transfer import TensorTransfer
from gnnperf.retrieval.trial_log import Searching, TrialLog
from gnnperf.schedules.traces import TraceDocument, program_key, replay
from gnnperf.search.evolution import Tuner

ROUND = 16
"""Schedules measured before the search thinks again; the least that are retrieval's."""
TRANSFERRED = 0.25
"""Share of the trials that are retrieval's candidates."""
SEARCHED = "MetaSchedule"
"""Stands for the neighbour of what the search itself found."""


@dataclass
class TensorTuning(Searching, TensorTransfer):
    """One run of the search."""

    def _try(self, query: TaskQuery, server: BenchServer) -> None:
        trials = _Trials(query, self)
        space = Space(None, query.task.module, self.target)
        tuner = Tuner(
            space,
            self.target,
            lambda modules, best_s: server.measure(query.number, [*map(vector_math, modules)], best_s),
            trials.keep,
            seed_of(query.task.graph.digest),
        )
        trials.restore(tuner, space, self._remembered(query))
        wanted = max(ROUND, round(TRANSFERRED * self.trials))
        given = [_candidate(space, c.schedule) for c in query.candidates[:wanted]]
        tuner.run(self.trials, 0.0, ROUND, given, lambda: time.monotonic() < self.deadline)
        log = trials.log
        query.tried = log.best()
        query.search = log.summary(len(log.found) - log.known, tuner.exhausted)

    def _final(self, query: TaskQuery, finalists: Sequence[int], server: BenchServer, pace: Pace) -> None:
        super()._final(query, finalists, server, pace)
        if self.memory is not None:
            best = [query.tried[n] for n in finalists]
            add_tried(self.memory, query.task, best, self.target, "tune: in turn")

    def _remembered(self, query: TaskQuery) -> list[tuple[TraceDocument, Outcome]]:
        """What the store knows of the very task."""
        found: list[tuple[TraceDocument, Outcome]] = []
        for record in self.memory.known(query.task.graph.digest, BASELINE) if self.memory else ():
            times = () if record.runtime_s is None else (record.runtime_s,)
            try:
                document = TraceDocument.from_json(record.schedule)
            except InputError:  # of another version
                continue
            found.append((document, Outcome.from_dict({"status": record.status, "samples_s": times})))
        return found


class _Trials:
    """What was measured on one task."""

    def __init__(self, query: TaskQuery, tuning: TensorTuning) -> None:
        self.query, self.tuning = query, tuning
        self._transferred = {c.key: c for c in query.candidates}
        self.log: TrialLog[TraceCandidate] = TrialLog()

    def restore(self, tuner: Tuner, space: Space, known: Sequence[tuple[TraceDocument, Outcome]]) -> None:
        """Hand on what was measured before, as far as it fits the task: another function may have the same
        graph, but other blocks."""
        candidates, outcomes = [], []
        for document, outcome in known[: self.tuning.trials]:
            try:
                with quiet():
                    schedule = replay(document, space.context)
            except NotApplicable:
                continue
            candidates.append(_candidate(space, schedule))
            outcomes.append(outcome)
        self._note("known", candidates, outcomes)
        self.log.known = len(candidates)
        tuner.restore(["known"] * len(candidates), candidates, outcomes)
        self.tuning.advance(len(candidates), self.query.task.name)

    def keep(self, origin: str, candidates: Sequence[Any], outcomes: Sequence[Outcome]) -> None:
        """A round was measured."""
        new = self._note(origin, candidates, outcomes)
        tuning = self.tuning
        if tuning.memory is not None:
            add_tried(tuning.memory, self.query.task, new, tuning.target, f"tune: {origin}")
        tuning.measured += len(new)
        tuning.advance(len(new), f"{self.query.task.name}{self.log.words}")

    def _note(
        self, origin: str, candidates: Sequence[Any], outcomes: Sequence[Outcome]
    ) -> list[tuple[TraceCandidate, Measurement]]:
        new = [
            (self._described(candidate.sch), as_measurement(outcome, self.query.baseline))
            for candidate, outcome in zip(candidates, outcomes, strict=True)
        ]
        self.log.add(origin, new)
        return new

    def _described(self, schedule: Any) -> TraceCandidate:
        """The transferred candidate that a schedule is, or one of its own."""
        known = self._transferred.get(program_key(schedule.mod))
        if known is not None:
            return known
        task = self.query.task
        return of_schedule(
            schedule,
            task.module,
            self.tuning.target,
            policy="searched",
            neighbour=task.graph.digest,
            neighbour_kernel=SEARCHED,
            distance=0.0,
        )


def _candidate(space: Space, schedule: Any) -> Any:
    from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate

    return MeasureCandidate(schedule, space.arguments)
