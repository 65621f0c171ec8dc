"""`gnnperf tune` of DaCe kernels: the search that collects corpora, started from what retrieval finds.

nests -> neighbours -> their recipes, ranked, beside the defaults -> measured -> random ones and mutations of
the best, for as many trials as are wanted -> winners, put back and judged as `transfer` does it. What is
measured goes to the user's store, a batch at a time; a later run knows it.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from gnnperf.errors import InputError
from gnnperf.measure import Measurement
from gnnperf.retrieval.measured import Memory, fastest
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.ranking import Candidate
from gnnperf.retrieval.records import add_tried
from gnnperf.retrieval.transfer import Transfer
from gnnperf.schedules import Recipe
from gnnperf.store import Record
from gnnperf.tuning import Bench
from gnnperf.tuning.search import BATCH, SearchBudget, default_starts, search
from gnnperf.tuning.trials import Trial

TRANSFERRED = 0.5
"""Share of the trials that are retrieval's candidates: mutations take long to find what others know."""
RANDOM_SHARE = 0.2
AGAIN = 3
"""Of the schedules that the store knows, the fastest are measured again: beside the baseline of this run."""
TOLD = 8
"""Measured schedules of a nest that are reported: the fastest."""
SEARCHED = "search"
"""Stands for the neighbour of what the search itself found."""


@dataclass
class Tuning(Transfer):
    """One run of the search. trials: per nest in all, those among them that the store already knows. memory:
    where measurements go, and where earlier ones are looked up; None: nowhere.

    advance: told of new trials, and what was found so far.

    Attributes:
        measured: trials of this run.
    """

    trials: int = 64
    memory: Memory | None = None
    advance: Callable[[int, str], None] = lambda _count, _doing: None
    measured: int = field(default=0, init=False)

    def _doubt(self, query: Query) -> str:
        return ""  # without a neighbour it is a search like any other

    def _try(self, query: Query, bench: Bench, deadline: float) -> None:
        known = self._remembered(query)
        candidates = {c.schedule: c for c in query.candidates[: round(TRANSFERRED * self.trials)]}
        best = [t.recipe for t in sorted(known, key=lambda t: t.runtime_s)[:AGAIN]]
        known = [t for t in known if t.recipe not in best]
        starts = [(recipe, "known") for recipe in best]
        starts += [(recipe, "given") for recipe in candidates] + default_starts()
        trials = _Trials(self, query, candidates)
        bench.remember(known)
        self.advance(len(known), trials.words)
        seed = int(hashlib.sha256(query.graph.digest.encode()).hexdigest()[:8], 16)
        budget = SearchBudget(self.trials, min(deadline - time.monotonic(), 1e9), RANDOM_SHARE)
        try:
            found = search(bench, starts, budget, Random(seed), trials.note, known)
        finally:
            trials.keep()
        query.search = trials.summary(len(known), found.ended == "exhausted")
        query.tried = trials.best(TOLD)
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
    found: list[tuple[Candidate, Measurement]] = field(default_factory=list)
    origins: Counter[str] = field(default_factory=Counter)
    kept: int = 0

    def note(self, trial: Trial) -> None:
        """One more."""
        own = Candidate(trial.recipe, 0.0, self.query.graph.digest, SEARCHED, 0.0)
        self.found.append((self.candidates.get(trial.recipe, own), trial.measurement))
        self.origins[trial.origin] += 1
        self.tuning.measured += 1
        if len(self.found) - self.kept >= BATCH:
            self.keep()
        self.tuning.advance(1, self.words)

    def keep(self) -> None:
        """Put into the store what is not there yet."""
        new, self.kept = self.found[self.kept :], len(self.found)
        if self.tuning.memory is not None and new:
            add_tried(self.tuning.memory, self.query, new)

    def best(self, count: int) -> list[tuple[Candidate, Measurement]]:
        """The fastest, or else failures."""
        return sorted(self.found, key=lambda pair: _runtime_s(pair[1]))[:count]

    def summary(self, known: int, exhausted: bool) -> dict[str, object]:
        """`NestReport.search`."""
        times = [_runtime_s(m) for _, m in self.found]
        points = sorted({2**n for n in range(20) if 2**n < len(times)} | ({len(times)} if times else set()))
        return {
            "trials": len(times),
            "known": known,
            "exhausted": exhausted,
            "origins": {**self.origins, **({"known": known + self.origins["known"]} if known else {})},
            "statuses": dict(Counter(m.status for _, m in self.found)),
            "after": points,
            "best_s": [s if s < math.inf else None for s in (min(times[:n]) for n in points)],
        }

    @property
    def words(self) -> str:
        """How far the search is."""
        best_s = min((_runtime_s(m) for _, m in self.found), default=math.inf)
        found = f", best {best_s * 1e3:.4g} ms" if best_s < math.inf else ""
        return f"{self.query.unit.nest.name}{found}"


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
