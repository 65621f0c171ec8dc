"""`gnnperf tune` of DaCe kernels: the search that collects corpora, started from what retrieval finds.

nests -> neighbours -> their recipes, ranked, beside the defaults -> measured -> random ones and mutations of
the best, for as many trials as are wanted -> winners, put back and judged as `transfer` does it. What is
measured goes to the user's store, a batch at a time; a later run knows it.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from random import Random

from gnnperf.backends.cpp.trials import Bench, Trial
from gnnperf.errors import InputError
from gnnperf.measure import Measurement
from gnnperf.retrieval.measured import fastest
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.ranking import Candidate
from gnnperf.retrieval.records import add_tried
from gnnperf.retrieval.transfer import Transfer
from gnnperf.retrieval.trial_log import Searching, TrialLog
from gnnperf.schedules.recipes import Recipe
from gnnperf.search.mutation import BATCH, SearchBudget, default_starts, search
from gnnperf.store import Record

TRANSFERRED = 0.5
"""Share of the trials that are retrieval's candidates: mutations take long to find what others know."""
MOST = 64
"""So many of them at the most."""
RANDOM_SHARE = 0.2
AGAIN = 3
"""Of the schedules that the store knows, the fastest are measured again: beside the baseline of this run."""
SEARCHED = "search"
"""Stands for the neighbour of what the search itself found."""


@dataclass
class Tuning(Searching, Transfer):
    """One run of the search."""

    def _try(self, query: Query, bench: Bench, deadline: float) -> None:
        known = self._remembered(query)
        transferred = min(round(TRANSFERRED * self.trials), MOST)
        candidates = {c.schedule: c for c in query.candidates[:transferred]}
        best = [t.recipe for t in sorted(known, key=lambda t: t.runtime_s)[:AGAIN]]
        known = [t for t in known if t.recipe not in best]
        starts = [(recipe, "known") for recipe in best]
        starts += [(recipe, "given") for recipe in candidates] + default_starts()
        trials = _Trials(self, query, candidates, TrialLog(known=len(known)))
        trials.log.origins["known"] = len(known)
        bench.remember(known)
        self.advance(len(known), query.unit.nest.name)
        seed = int(hashlib.sha256(query.graph.digest.encode()).hexdigest()[:8], 16)
        budget = SearchBudget(self.trials, min(deadline - time.monotonic(), 1e9), RANDOM_SHARE)
        try:
            found = search(bench, starts, budget, Random(seed), trials.note, known)
        finally:
            trials.keep()
        query.search = trials.log.summary(len(trials.log.found), found.ended == "exhausted")
        query.tried = trials.log.best()
        query.winner = fastest(query.tried)
        if query.winner is None:
            query.reason = "none of the schedules was faster than the baseline beyond noise"

    def _remembered(self, query: Query) -> list[Trial]:
        """What the store knows of the very nest on such a machine, beside the same baseline."""
        assert query.case is not None
        found: dict[Recipe, Trial] = {}
        records = self.memory.known(query.graph.digest, query.case.baseline_name) if self.memory else ()
        for record in records:
            try:
                recipe = Recipe.from_dict(json.loads(record.schedule))
            except InputError:  # of another version
                continue
            found.setdefault(recipe, Trial(recipe, _measurement(record), "known"))
        return list(found.values())[: self.trials]


@dataclass
class _Trials:
    """What is measured on one nest."""

    tuning: Tuning
    query: Query
    candidates: dict[Recipe, Candidate]
    log: TrialLog[Candidate]
    kept: int = 0

    def note(self, trial: Trial) -> None:
        """One more."""
        own = Candidate(trial.recipe, 0.0, self.query.graph.digest, SEARCHED, 0.0)
        self.log.add(trial.origin, [(self.candidates.get(trial.recipe, own), trial.measurement)])
        self.tuning.measured += 1
        if len(self.log.found) - self.kept >= BATCH:
            self.keep()
        self.tuning.advance(1, f"{self.query.unit.nest.name}{self.log.words}")

    def keep(self) -> None:
        """Put into the store what is not there yet."""
        new, self.kept = self.log.found[self.kept :], len(self.log.found)
        if self.tuning.memory is not None and new:
            add_tried(self.tuning.memory, self.query, new)


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
