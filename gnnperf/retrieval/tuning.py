"""`gnnperf tune`: a search with measurements, started from what retrieval finds.

Candidates of retrieval are measured first. From them, and from what the user's store knows of the very task,
the search goes on: random recipes and mutations of the best for loop nests, MetaSchedule's evolutionary
search for TVM functions, of which the network says what is worth measuring. What is measured goes to the
user's store a batch at a time: a later run knows it.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, cast

from gnnperf.backends.base import Bench, Tried
from gnnperf.backends.cpp.executor import CppBench
from gnnperf.backends.cpp.trials import Trial
from gnnperf.backends.tvm.executor import TvmBench
from gnnperf.errors import NotApplicable
from gnnperf.frontends.tvm.quiet import quiet
from gnnperf.frontends.tvm.spaces import DesignSpace, seed_of
from gnnperf.frontends.tvm.vector_math import vector_math
from gnnperf.measure import Measurement
from gnnperf.measure.outcome import Outcome
from gnnperf.retrieval.memory import Memory
from gnnperf.retrieval.pipeline import Pipeline
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.ranking import RecipeCandidate
from gnnperf.retrieval.scheduled import OfNest, scores_of
from gnnperf.retrieval.traces.calls import CallCandidate
from gnnperf.retrieval.traces.candidates import TraceCandidate, of_schedule
from gnnperf.retrieval.traces.proposer import TraceProposer
from gnnperf.schedules.recipes import Recipe
from gnnperf.schedules.traces import TraceDocument, program_key, replay
from gnnperf.search.evolution import Tuner
from gnnperf.search.mutation import BATCH, SearchBudget, default_starts, search
from gnnperf.store import Record

TOLD = 8
"""Measured schedules of a task that are reported: the fastest."""
RECIPES, MOST_RECIPES = 0.5, 64
"""Share of the trials on a nest that are retrieval's candidates, and the most of them: mutations take long to
find what others know."""
RANDOM_SHARE = 0.2
"""Of the trials on a nest."""
AGAIN = 3
"""Of the recipes that the store knows, the fastest are measured again: beside the baseline of this run."""
TRACES = 0.25
"""Share of the trials on a function that are retrieval's candidates: at least a round."""
ROUND = 16
"""Schedules of a function measured before the search thinks again."""
SEARCHED, METASCHEDULE = "search", "MetaSchedule"
"""Stand for the neighbour of recipes, and of traces, that a search itself found."""


@dataclass
class Tuning(Pipeline):
    """One run of the search. trials: per task in all, those among them that the store already knows. memory:
    where measurements go, and where earlier ones are looked up; None: nowhere. advance: is told of new
    trials, and what was found so far.

    Attributes:
        measured: trials of this run.
    """

    trials: int = 64
    memory: Memory | None = None
    advance: Callable[[int, str], None] = lambda _count, _doing: None
    measured: int = field(default=0, init=False)

    def propose(self, query: Query) -> None:
        """Without a neighbour it is a search like any other."""
        super().propose(query)
        query.reason = ""

    def _try(self, query: Query, bench: Bench) -> None:
        query.tried = self.search(query, bench).best()

    def search(self, query: Query, bench: Bench) -> TrialLog:
        """All trials of a task that has candidates; `Query.search` tells of them."""
        log = TrialLog(query, self)
        try:
            if isinstance(bench, TvmBench):
                exhausted = search_traces(log, bench)
            else:
                exhausted = search_recipes(log, cast(CppBench, bench))
        finally:
            log.keep()
        query.search = log.summary(exhausted)
        return log

    def _decide(self, query: Query, bench: Bench) -> None:
        before = [measurement for _, measurement in query.tried]
        super()._decide(query, bench)
        both = zip(query.tried, before, strict=True)
        again = [
            pair for pair, old in both if (pair[1].status, pair[1].runtime_s) != (old.status, old.runtime_s)
        ]
        if self.memory is not None and again:
            assert self.executor is not None
            self.memory.add(query, again, self.executor.provenance, "tune: in turn")


@dataclass
class TrialLog:
    """What was measured on one task. found: candidates with their measurements, in the order of the trials.
    origins: how many came from where. trials: how many this run measured, the best of an earlier run once
    more among them. known: how many are of an earlier run alone. kept: how many of the found are in the
    store."""

    query: Query
    tuning: Tuning
    found: list[Tried] = field(default_factory=list)
    origins: Counter[str] = field(default_factory=Counter)
    trials: int = 0
    known: int = 0
    kept: int = 0

    def restore(self, tried: Sequence[Tried], count: int) -> None:
        """Trials of an earlier run: their count, and those of them that are shown again."""
        self.found += tried
        self.origins["known"] += count
        self.known += count
        self.kept = len(self.found)
        self.tuning.advance(count, self.query.task.name)

    def add(self, origin: str, tried: Sequence[Tried]) -> None:
        """Trials of this run."""
        self.found += tried
        self.origins[origin] += len(tried)
        self.trials += len(tried)
        self.tuning.measured += len(tried)
        if len(self.found) - self.kept >= BATCH:
            self.keep(origin)
        self.tuning.advance(len(tried), f"{self.query.task.name}{self.words}")

    def keep(self, origin: str = "search") -> None:
        """Put into the store what is not there yet."""
        new, self.kept = self.found[self.kept :], len(self.found)
        tuning = self.tuning
        if tuning.memory is not None and new:
            assert tuning.executor is not None
            tuning.memory.add(self.query, new, tuning.executor.provenance, f"tune: {origin}")

    def records(self, kind: str) -> list[Record]:
        """What the store knows of the very task."""
        memory = self.tuning.memory
        return [*memory.known(self.query, kind)] if memory else []

    def best(self) -> list[Tried]:
        """The fastest `TOLD`, or else failures."""
        return sorted(self.found, key=lambda pair: _runtime_s(pair[1]))[:TOLD]

    def summary(self, exhausted: bool) -> dict[str, Any]:
        """`NestReport.search`."""
        times = [_runtime_s(m) for _, m in self.found]
        doubling = [2**n for n in range(len(times).bit_length()) if 2**n < len(times)]
        points = [*doubling, len(times)] if times else []
        best = [min(times[:n]) for n in points]
        return {
            "trials": self.trials,
            "known": self.known,
            "exhausted": exhausted,
            "origins": {origin: count for origin, count in self.origins.items() if count},
            "statuses": dict(Counter(m.status for _, m in self.found)),
            "after": points,
            "best_s": [s if s < math.inf else None for s in best],
        }

    @property
    def words(self) -> str:
        """How fast the best is, for people."""
        best_s = min((_runtime_s(m) for _, m in self.found), default=math.inf)
        return f", best {best_s * 1e3:.4g} ms" if best_s < math.inf else ""


def search_recipes(log: TrialLog, bench: CppBench) -> bool:
    """Retrieval's candidates beside the defaults, then random recipes and mutations of the best, of which the
    network chooses; until the trials or the time are used up. Whether there is nothing new to try."""
    query, tuning = log.query, log.tuning
    known = _known_trials(log)
    transferred = min(round(RECIPES * tuning.trials), MOST_RECIPES)
    given = {c.schedule: c for c in query.candidates[:transferred]}
    best = [t.recipe for t in sorted(known, key=lambda t: t.runtime_s)[:AGAIN]]
    known = [t for t in known if t.recipe not in best]
    starts = [(recipe, "known") for recipe in best]
    starts += [(recipe, "given") for recipe in given] + default_starts()
    log.restore([], len(known))
    bench.bench.remember(known)

    def note(trial: Trial) -> None:
        own = RecipeCandidate(trial.recipe, 0.0, query.graph.digest, SEARCHED, 0.0)
        log.add(trial.origin, [(given.get(trial.recipe, own), trial.measurement)])

    seed = int(hashlib.sha256(query.graph.digest.encode()).hexdigest()[:8], 16)
    left_s = min(tuning.deadline - time.monotonic(), 1e9)
    budget = SearchBudget(tuning.trials, left_s, RANDOM_SHARE)
    head = partial(scores_of, tuning.bundle, cast(OfNest, query.task), vectors=tuning.device.vectors)
    found = search(bench.bench, starts, budget, Random(seed), note, known, head)
    return found.ended == "exhausted"


def _known_trials(log: TrialLog) -> list[Trial]:
    """What was measured before, each recipe once."""
    found: dict[Recipe, Trial] = {}
    for record in log.records(Recipe.kind):
        recipe = Recipe.from_json(record.schedule)
        found.setdefault(recipe, Trial(recipe, _measurement(record), "known"))
    return list(found.values())[: log.tuning.trials]


def search_traces(log: TrialLog, bench: TvmBench) -> bool:
    """MetaSchedule's evolution, by our cost model, whose populations grow from what is measured: retrieval's
    candidates, and what the store knows; until the trials or the time are used up. Whether there is nothing
    new to try."""
    from gnnperf.nn.traces import TensorBundle
    from gnnperf.retrieval.traces.cost_model import GNNCostModel

    query, tuning, target = log.query, log.tuning, bench.target
    assert isinstance(tuning.proposer, TraceProposer)
    assert isinstance(tuning.proposer.model, TensorBundle)
    space = DesignSpace(bench.task.module, target)
    transferred = {c.key: c for c in query.candidates if isinstance(c, TraceCandidate)}

    def candidate(schedule: Any) -> TraceCandidate:
        """The transferred candidate that a schedule is, or one of its own."""
        return transferred.get(program_key(schedule.mod)) or of_schedule(
            schedule, space.module, target, policy="searched", neighbour=query.graph.digest,
            neighbour_kernel=METASCHEDULE, distance=0.0,
        )  # fmt: skip

    def described(candidates: Sequence[Any], outcomes: Sequence[Outcome]) -> list[Tried]:
        return [
            (candidate(one.sch), outcome.measurement.over(bench.baseline))
            for one, outcome in zip(candidates, outcomes, strict=True)
        ]

    def keep(origin: str, candidates: Sequence[Any], outcomes: Sequence[Outcome]) -> None:
        log.add(origin, described(candidates, outcomes))
        log.keep(origin)

    tuner = Tuner(
        space,
        target,
        lambda modules, best_s: bench.server.measure(bench.number, [*map(vector_math, modules)], best_s),
        keep,
        seed_of(query.graph.digest),
        GNNCostModel(tuning.proposer.model),
    )
    known, outcomes = _known_traces(log, space)
    log.restore(described(known, outcomes), len(known))
    tuner.restore(["known"] * len(known), known, outcomes)
    calls = [c for c in query.candidates if isinstance(c, CallCandidate)]
    log.add("given", [*bench.measure(calls, len(calls))])
    traces = [c for c in query.candidates if not isinstance(c, CallCandidate)]
    given = [space.candidate(c.scheduled) for c in traces[: max(ROUND, round(TRACES * tuning.trials))]]
    tuner.run(tuning.trials - len(calls), 0.0, ROUND, given, lambda: time.monotonic() < tuning.deadline)
    return tuner.exhausted


def _known_traces(log: TrialLog, space: DesignSpace) -> tuple[list[Any], list[Outcome]]:
    """What was measured before, as far as it fits the task: another function may have the same graph, but
    other blocks."""
    candidates, outcomes = [], []
    for record in log.records(TraceDocument.kind)[: log.tuning.trials]:
        times = () if record.runtime_s is None else (record.runtime_s,)
        try:
            with quiet():
                schedule = replay(TraceDocument.from_json(record.schedule), space.context)
        except NotApplicable:
            continue
        candidates.append(space.candidate(schedule))
        outcomes.append(Outcome.from_dict({"status": record.status, "samples_s": times}))
    return candidates, outcomes


def _runtime_s(measurement: Measurement) -> float:
    return measurement.runtime_s or math.inf


def _measurement(record: Record) -> Measurement:
    interval = None
    if record.interval_lo_s is not None and record.interval_hi_s is not None:
        interval = record.interval_lo_s, record.interval_hi_s
    return Measurement(
        record.status,  # type: ignore[arg-type]  # checked by the store
        record.runtime_s,
        interval,
        record.samples,
        baseline_s=record.baseline_s,
        speedup=record.speedup,
    )
