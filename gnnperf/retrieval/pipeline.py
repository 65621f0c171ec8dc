"""The main job: retrieve schedules for every task of a program, measure them, keep what wins.

tasks -> graphs -> embed -> nearest records -> candidates, ranked -> built, verified and measured beside the
baseline, in rounds -> accepted beyond noise -> put back -> the whole verified and measured (design, section
6).
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gnnperf.backends.base import Bench, Executor, Tried, Whole, fastest_right, unverifiable
from gnnperf.devices import DeviceSpec
from gnnperf.errors import GnnperfError, NotApplicable
from gnnperf.frontends.base import Program
from gnnperf.measure import Evidence, Measurement, Timing, speedup_interval
from gnnperf.measure.competitors import Competitor
from gnnperf.measure.isolation import not_isolated
from gnnperf.retrieval.confidence import Confidence
from gnnperf.retrieval.proposers import Proposer, Stages
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.report import RetrievalReport, comparison

if TYPE_CHECKING:
    from gnnperf.nn import Bundle

WORTHLESS_SHARE, SECOND_LOOK_SHARE = 0.005, 0.02
"""A task below the first share of the program is not worth a trial, until it has the second one of what is
left when others have become faster."""
TOGETHER = 2.0
"""A program that takes so many times what its tasks take alone is slow for how they are put together: it is
then tried with the best of each, even if that is no faster than the task's baseline alone."""
FIRST = 3
"""Candidates, at least, of the first of several rounds: of two, too often neither is of the right kind."""

OUT_OF_TIME = "the time budget ended before this task was tried"
MISTRANSLATED = "the program as DaCe translates it, which is what was tuned, is not what Python makes of it"
NOTHING_TO_TUNE = "the kernel has nothing that can be tuned"
NOT_FASTER = "none of the candidates was faster than the baseline beyond noise"
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|\bnan\b|\binf\b")


@dataclass(frozen=True)
class Options:
    """k: measured candidates per task. budget_s: wall time for measuring candidates, or None. model_only:
    rank, measure nothing."""

    k: int = 5
    budget_s: float | None = None
    model_only: bool = False


@dataclass
class Pipeline:
    """One run of the main job.

    bundle: embeds the tasks' graphs. proposer: finds candidates; executor: measures them, None where only
    `ask` is called. confidence: how sure to be of what was measured. competitors: that every task is timed
    beside. notify: is told what is being done. started: `time.monotonic()` when the whole work began, for
    what came before.
    """

    program: Program
    bundle: Bundle
    proposer: Proposer
    executor: Executor | None
    device: DeviceSpec
    options: Options = Options()
    confidence: Confidence | None = None
    competitors: Sequence[Competitor] = ()
    notify: Callable[[str], None] = lambda _: None
    started: float = field(default_factory=time.monotonic)
    deadline: float = field(default=math.inf, init=False)

    @property
    def stages(self) -> Stages:
        """Where the time went."""
        return self.proposer.stages

    def run(self) -> tuple[RetrievalReport, list[Query]]:
        """(report, the queries with their measurements)."""
        executor, options = self.executor, self.options
        assert executor is not None
        self.stages.seconds["loading"] = time.monotonic() - self.started
        self.notify("reading the kernel's inputs")
        self.stages.timed("inputs", partial(executor.prepare, not options.model_only))
        shared = self.proposer.adopted is not None and executor.verifies_whole and not options.model_only
        queries = self.ask(sharing=shared)
        if options.model_only:
            note = "nothing was measured (--model-only)" if queries else NOTHING_TO_TUNE
            return self._report(queries, None, [note]), queries
        before = self.stages.timed("baseline", executor.whole)
        self.stages.timed("candidates", partial(self.measure, queries, before))
        if any(query.winner for query in queries):
            self.notify("putting the winners together")
        try:
            whole = self.stages.timed("whole", partial(executor.assemble, queries)) or _added_up(queries)
        except GnnperfError as error:
            for query in queries:
                query.winner = None
            return replace(self._report(queries, None, [f"{error}; nothing is kept"]), failed=True), queries
        if whole and whole.competitors:
            self.stages.seconds["whole"] -= whole.competitors_s
            self.stages.seconds["competitors"] = whole.competitors_s
        return self._report(queries, whole, []), queries

    # ------------------------------------------------------------------ asking

    def ask(self, numbers: Collection[int] | None = None, sharing: bool = False) -> list[Query]:
        """Graphs, embeddings, neighbours and ranked candidates of all tasks that can be tuned.

        numbers: places of the tasks that are asked about; None: all. sharing: of tasks with the same graph,
        such as the steps of a recurrent network, the first alone has candidates, once it is worth a trial;
        the others are `alike`.
        """
        asked = range(len(self.program.tasks)) if numbers is None else numbers
        tasks = [(n, self.program.tasks[n]) for n in asked if self.program.tasks[n].objection is None]
        queries = self.stages.timed("graphs", lambda: [Query(task, task.graph, n) for n, task in tasks])
        if queries:
            graphs = [query.graph for query in queries]
            vectors = self.stages.timed("embedding", lambda: self.bundle.embed(graphs))
            first: dict[str, Query] = {}
            for query, vector in zip(queries, vectors, strict=True):
                query.vector = np.asarray(vector)
                known = first.setdefault(query.graph.digest, query)
                if not sharing:
                    self.propose(query)
                elif known is not query:
                    query.alike = known
                    known.measured_for += 1
        return queries

    def propose(self, query: Query) -> None:
        """Find neighbours and candidates, or say why there are none."""
        assert query.vector is not None
        self.proposer.ask(query, query.vector, self.options.k)
        query.asked = True

    # ------------------------------------------------------------------ measuring

    def measure(self, queries: Sequence[Query], whole: Timing | None) -> None:
        """Verify and time the first k candidates of every task; pick winners. whole: of the program."""
        if self.options.budget_s is not None:
            self.deadline = time.monotonic() + self.options.budget_s
        for position, query in enumerate(queries, start=1):
            if query.alike is not None:
                self._follow(query, query.alike)
                continue
            if query.reason and whole is not None:
                continue  # nothing of it is measured where the whole tells what it takes
            self.notify(f"{position} of {len(queries)}: {query.task.name}")
            self._measure(query, whole)
        if whole is None:
            _share(queries)
            return
        alone_s = sum(query.spent_s for query in queries)
        parts_are_all = self._parts_are_all(queries)
        self._look_again(queries, 0.0 if parts_are_all else whole.runtime_s - alone_s)
        # What a torch program puts together is compiled as its parts are.
        if parts_are_all and self.proposer.adopted is None and whole.runtime_s > TOGETHER * alone_s:
            for query in queries:
                query.winner = query.winner or fastest_right(query.tried)
                query.reason = "" if query.winner else query.reason

    def _parts_are_all(self, queries: Sequence[Query]) -> bool:
        """Is all of the program in tasks that were timed?"""
        parts = not self.program.skipped and all(task.objection is None for task in self.program.tasks)
        return parts and all(query.baseline is not None for query in queries)

    def _look_again(self, queries: Sequence[Query], others_s: float) -> None:
        """Measure what was passed over, where the others' gains have made it worth a trial. others_s: what
        the program does beside these tasks."""
        while time.monotonic() < self.deadline:
            left_s = max(0.0, others_s) + sum(query.spent_s - query.saved_s for query in queries)
            least_s = SECOND_LOOK_SHARE * left_s
            again = [q for q in queries if q.passed_over and q.spent_s * q.measured_for > least_s]
            if not again:
                return
            for query in again:
                self.notify(f"again: {query.task.name}, now {query.spent_s / left_s:.0%} of the kernel")
                query.passed_over, query.reason = False, ""
                self._measure(query, None)
            for query in queries:
                if query.alike in again:
                    self._follow(query, query.alike)

    def _measure(self, query: Query, whole: Timing | None) -> None:
        executor = self.executor
        assert executor is not None
        if self._late(query) and whole is not None:
            return
        try:
            with executor.opened(query.task, query.number) as bench:
                query.baseline, query.baseline_name = bench.baseline, bench.baseline_name
                query.baseline_note = bench.baseline_note
                if whole is not None:
                    query.share = min(1.0, query.spent_s / whole.runtime_s)
                    if query.share * query.measured_for < WORTHLESS_SHARE:
                        query.passed_over = True
                        query.reason = f"{query.share:.2%} of the kernel's runtime: not worth a trial"
                if not query.reason and not query.asked:
                    self.propose(query)
                if not query.reason and not self._late(query):
                    self._try(query, bench)
                    self._decide(query, bench)
                elif self.competitors:
                    self._decide(query, bench)
        except GnnperfError as error:
            query.reason = f"it cannot be measured alone: {error}"

    def _follow(self, query: Query, measured: Query) -> None:
        """What a task with the same graph was given, for this one, too. The whole program is verified with
        it."""
        query.reason = ""
        query.baseline, query.baseline_name = measured.baseline, measured.baseline_name
        query.baseline_note = measured.baseline_note
        query.neighbours, query.competitors = measured.neighbours, measured.competitors
        name = measured.task.name
        if measured.winner is None:
            query.reason = f"as {name}, which is alike: {measured.reason}"
            return
        assert self.proposer.adopted is not None
        candidate, timed = measured.winner
        try:
            query.winner = self.proposer.adopted(query, candidate), timed
        except NotApplicable as reason:
            query.reason = f"what {name}, which is alike, was given does not fit: {reason}"

    def _late(self, query: Query) -> bool:
        if time.monotonic() > self.deadline and not query.reason:
            query.reason = OUT_OF_TIME
        return time.monotonic() > self.deadline

    def _try(self, query: Query, bench: Bench) -> None:
        """Measure candidates of a task."""
        query.tried = self.try_first(query, bench)

    def try_first(self, query: Query, bench: Bench) -> list[Tried]:
        """Measure k candidates in rounds, the first as they are ranked; these say more about the others."""
        k, proposer = self.options.k, self.proposer
        several = len(proposer.rounds) > 1
        ends = [max(math.ceil(share * k), min(FIRST, k) if several else 1) for share in proposer.rounds]
        tried: list[Tried] = []
        order = proposer.first(query.candidates, ends[0])
        for end in ends:
            measured: list[Tried] = []
            count = end - sum(m.status != "not_applicable" for _, m in tried)
            for candidate, measurement in bench.measure(order, count):
                measured.append((candidate, measurement))
                # All of a round are compiled together, so the first is measured however long that took.
                if measurement.status != "not_applicable" and time.monotonic() > self.deadline:
                    return [*tried, *measured]
            tried += measured
            if end < k:
                known = {id(candidate) for candidate, _ in measured}
                left = [candidate for candidate in order if id(candidate) not in known]
                order = proposer.again(query, left, tried)
        return tried

    def _decide(self, query: Query, bench: Bench) -> None:
        """Time the best of the tried once more where that is called for; pick the winner."""
        query.tried, query.competitors = bench.finals(query.tried, self.competitors)
        query.baseline = bench.baseline
        query.winner = fastest(query.tried)
        if query.winner is None and not query.reason:
            query.reason = why_all_failed([m for _, m in query.tried]) or NOT_FASTER

    # ------------------------------------------------------------------ reporting

    def _report(self, queries: Sequence[Query], whole: Whole | None, notes: Sequence[str]) -> RetrievalReport:
        executor = self.executor
        assert executor is not None
        given = whole.schedules if whole else {}
        said = [*self.program.notes, *notes, *([whole.note] if whole else [])]
        if not notes and not given and not (whole and whole.note):
            said.insert(0, why_kept(queries))
        if whole and whole.evidence.unverifiable:
            said.append(unverifiable(whole.evidence))
        if whole and whole.evidence.quantised:
            said.append(f"rounding may move integers by one in {', '.join(whole.evidence.quantised)}")
        if whole and whole.evidence.misleads:
            said.insert(0, f"{MISTRANSLATED}: {whole.evidence.python}")
        if any(query.tried for query in queries):
            said.append(not_isolated())
        known = whole.evidence if whole and whole.evidence.inputs else None
        return RetrievalReport(
            kernel=self.program.name,
            device=self.device.fingerprint,
            baseline_name=executor.baseline_name,
            baseline_note=executor.baseline_note,
            baseline=whole.baseline if whole else None,
            tuned=whole.tuned if whole else None,
            speedup=whole.speedup if whole else None,
            speedup_interval=whole.speedup_interval if whole else None,
            verified=known is not None and not (known.unverifiable or known.misleads),
            verification=known,
            kept_baseline=whole is None or whole.kept_baseline,
            note="; ".join(filter(None, said)),
            candidates_measured=sum(query.measured for query in queries),
            wall_s=time.monotonic() - self.started,
            nests=[q.report(self.options.k, given.get(q.number), self.confidence) for q in queries],
            skipped=[
                *({"part": skipped.part, "reason": skipped.reason} for skipped in self.program.skipped),
                *({"part": t.name, "reason": t.objection} for t in self.program.tasks if t.objection),
            ],
            stages_s=dict(self.stages.seconds),
            beside=[comparison(name, m, whole.tuned) for name, m in whole.competitors.items()]
            if whole
            else [],
        )


def fastest(tried: Sequence[Tried]) -> Tried | None:
    """The fastest candidate that beats the baseline; None where none does."""
    good = [pair for pair in tried if pair[1].faster_beyond_noise]
    return min(good, key=lambda pair: pair[1].runtime_s or 0.0, default=None)


def why_kept(queries: Sequence[Query]) -> str:
    """Why there is no winner at all. Where all candidates failed, it is for what."""
    if not queries:
        return f"{NOTHING_TO_TUNE}; the baseline is kept"
    tried = [measurement for query in queries for _, measurement in query.tried]
    if not tried:
        return "nothing was tried; the baseline is kept"
    why = why_all_failed(tried) or "no schedule was faster than the baseline beyond noise"
    return f"{why}; the baseline is kept"


def why_all_failed(tried: Sequence[Measurement]) -> str:
    """The cause, or the most frequent one and how many there are, where no candidate ran right; empty where
    one did. Causes that differ in numbers alone are one, as what they say of arrays and times differs."""
    if not tried or any(measurement.status == "ok" for measurement in tried):
        return ""
    run = [m for m in tried if m.status != "not_applicable"] or tried
    causes = Counter((m.status, _NUMBER.sub("#", m.detail)) for m in run)
    (most, count), *others = causes.most_common()
    shown = next(m for m in run if (m.status, _NUMBER.sub("#", m.detail)) == most)
    cause = f"{shown.status}: {shown.detail}" if shown.detail else shown.status
    if not others:
        return f"every candidate failed for one cause: {cause}"
    return f"every candidate failed, for {len(causes)} causes; {count} of {len(run)}: {cause}"


def _share(queries: Sequence[Query]) -> None:
    """Of what all tasks take together."""
    total_s = sum(query.spent_s for query in queries)
    for query in queries:
        query.share = query.spent_s / total_s if query.spent_s else None


def _added_up(queries: Sequence[Query]) -> Whole | None:
    """Of all tasks that were measured, each as often as it is called; the ends of the intervals added up hold
    the sum. None where none was."""
    queries = [query for query in queries if query.baseline is not None]
    if not queries:
        return None

    def total(timings: Sequence[Timing | None]) -> Timing:
        parts = [(t, q.task.calls or 1) for t, q in zip(timings, queries, strict=True) if t is not None]
        low, high = (sum(t.interval_s[end] * calls for t, calls in parts) for end in (0, 1))
        return Timing(sum(t.runtime_s * calls for t, calls in parts), (low, high))

    baseline, tuned = total([q.baseline for q in queries]), total([q.best for q in queries])
    won = {q.number: q.winner[0].schedule for q in queries if q.winner}
    interval = speedup_interval(baseline.interval_s, tuned.interval_s) if won else None
    note = "times are those of each task alone, times its calls, added up" if len(queries) > 1 else ""
    # The second set of inputs is that of the finals, which none but candidates that ran right get to.
    judged = any(q.winner or (q.tried and q.reason == NOT_FASTER) for q in queries)
    return Whole(
        baseline, tuned, baseline.runtime_s / tuned.runtime_s, interval, not won, won, note=note,
        evidence=Evidence(("random numbers", "others") if judged else ()),
    )  # fmt: skip
