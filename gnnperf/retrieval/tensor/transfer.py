"""The main job on TVM kernels: retrieve traces for every task of a kernel, measure them, keep what wins.

tasks -> graphs -> embed -> nearest workloads -> their traces -> transfer to the task, and draw others from
MetaSchedule's rules -> scheduled graphs -> rank by the cost model -> verify and measure the first few, rank
again by what they show, measure the next -> time the best in turn with the unscheduled function -> keep what
is faster beyond noise (design, section 6).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any

from gnnperf.backends.tvm.server import BenchServer
from gnnperf.corpus.traces import BASELINE
from gnnperf.devices import DeviceSpec
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.eligibility import objection
from gnnperf.measure import Measurement
from gnnperf.measure.competitors import Competitor, joined
from gnnperf.measure.interleaved import Pace, in_turns
from gnnperf.measure.outcome import Outcome
from gnnperf.nn import Bundle
from gnnperf.retrieval.measured import Stages, fastest
from gnnperf.retrieval.neighbours import nearest
from gnnperf.retrieval.report import Retrieval, Timing
from gnnperf.retrieval.tensor.candidates import KIND, TraceCandidate
from gnnperf.retrieval.tensor.proposals import propose
from gnnperf.retrieval.tensor.query import TaskQuery, as_measurement, beside, timing
from gnnperf.retrieval.tensor.quiet import quiet
from gnnperf.retrieval.tensor.ranking import CostModel, hedged, ranked, ranked_again
from gnnperf.retrieval.tensor.recipes import KIND as RECIPE
from gnnperf.retrieval.tensor.recipes import lent
from gnnperf.retrieval.tensor.whole import WholeKernel, WholeTimes
from gnnperf.store import Neighbour, Store

FINALISTS = 3
"""Of the candidates that were measured, timed once more in turn with the baseline."""
FINALS_S = 4.0
"""Wall time for that of all tasks of a kernel, where they are many."""
ROUNDS = (0.5, 0.75, 1.0)
"""Shares of the candidates after which the rest is ranked again."""
FIRST = 3
"""Candidates, at least, of the first round: of two, too often neither is of the right kind."""
HEDGED = 4
"""Candidates of the first round from which on one is the most faithful, whatever the model says of it."""
ASKED = 4
"""Times as many neighbours are looked up as are wanted: those without a trace are passed over."""
FAR = 0.1
"""Distance of the nearest TVM workload from which on DaCe nests are asked too. New shapes of collected kinds
lie nearer (15 of 16), stencils and outer products, of which there is no trace, at 0.2."""

OUT_OF_TIME = "the time budget ended before this task was tried"


@dataclass(frozen=True)
class TensorOptions:
    """k: measured candidates per task. neighbours: workloads consulted. budget_s: wall time for measuring
    candidates, or None. exclude: digests, and families, of workloads that are not consulted."""

    k: int = 3
    neighbours: int = 16
    budget_s: float | None = None
    exclude: frozenset[str] = frozenset()
    exclude_families: frozenset[str] = frozenset()


@dataclass
class TensorTransfer:
    """One run of the main job. server: measures the tasks' modules, in their order; None measures nothing.

    model: ranks scheduled graphs. lenders: stores with recipes of DaCe nests. libraries: that every task is
    timed beside. whole: the program that the tasks are of, which is timed in the end. started:
    `time.monotonic()` when the whole work began.
    """

    kernel: str
    tasks: Sequence[TvmTask]
    target: Any
    bundle: Bundle
    model: CostModel
    stores: Sequence[Store]
    device: DeviceSpec
    server: BenchServer | None
    options: TensorOptions = TensorOptions()
    lenders: Sequence[Store] = ()
    libraries: Sequence[Competitor] = ()
    whole: WholeKernel | None = None
    notify: Callable[[str], None] = lambda _: None
    started: float = field(default_factory=time.monotonic)
    stages: Stages = field(default_factory=Stages)
    deadline: float = math.inf

    def run(self) -> tuple[Retrieval, list[TaskQuery]]:
        """(report, the queries with their measurements)."""
        self.stages.seconds["loading"] = time.monotonic() - self.started
        skipped = {task.name: objection(task) for task in self.tasks}
        queries = [TaskQuery(task, n) for n, task in enumerate(self.tasks) if skipped[task.name] is None]
        self.ask(queries)
        if self.server is not None:
            self.stages.timed("candidates", partial(self.measure, queries, self.server))
        whole, note = self._measured_whole(queries)
        left = {name: why for name, why in skipped.items() if why}
        return self._report(queries, left, whole, note), queries

    def _measured_whole(self, queries: Sequence[TaskQuery]) -> tuple[WholeTimes | None, str]:
        """Of the program that the tasks are of, and what is to be said."""
        if self.whole is None or self.server is None:
            return None, ""
        self.notify("the whole program")
        try:
            whole = self.stages.timed("whole", partial(self.whole.measure, queries, self.server))
        except MeasureError as error:
            return None, f"the whole program cannot be measured: {error}"
        return whole, whole.note

    # ------------------------------------------------------------------ asking

    def ask(self, queries: Sequence[TaskQuery]) -> None:
        """Neighbours and ranked candidates of all tasks."""
        if not queries:
            return
        graphs = self.stages.timed("graphs", lambda: [q.task.graph for q in queries])
        vectors = self.stages.timed("embedding", lambda: self.bundle.embed(graphs))
        for query, vector in zip(queries, vectors, strict=True):
            query.neighbours = self.stages.timed("search", partial(self._nearest, vector))
            with quiet():
                pool = self.stages.timed(
                    "proposals", partial(propose, query.task, query.neighbours, self.target)
                )
            query.candidates = self.stages.timed("ranking", partial(ranked, pool.candidates, self.model))
            query.refused = pool.refused
            self.stages.timed("recipes", partial(self._borrow, query, vector))
            query.reason = self._doubt(query)

    def _borrow(self, query: TaskQuery, vector: Any) -> None:
        """Recipes of DaCe nests, where all TVM workloads are far and these are nearer: the recipes and the
        traces in turn."""
        reach = min((n.distance for n in query.neighbours), default=math.inf)
        nests = self._nearest(vector, RECIPE) if self.lenders and reach > FAR else []
        if not nests or nests[0].distance >= reach:
            return
        graph = query.task.graph
        recipes = lent(
            query.task, self.target, nests, lambda found: self.bundle.score([graph], found)[0], self.model
        )
        if recipes:
            both = zip_longest(recipes, query.candidates)
            query.candidates = [candidate for pair in both for candidate in pair if candidate is not None]
            query.neighbours = sorted([*query.neighbours, *nests], key=lambda n: n.distance)

    def _nearest(self, vector: Any, kind: str = KIND) -> list[Neighbour]:
        """Neighbours with schedules of a kind, that ran right."""
        options = self.options
        stores = self.stores if kind == KIND else self.lenders
        found = nearest(
            stores, vector, ASKED * options.neighbours, self.bundle.encoder_id, self.device.fingerprint
        )
        usable = [
            n
            for n in found
            if n.nest.digest not in options.exclude
            and n.nest.family not in options.exclude_families
            and any(r.schedule_kind == kind and r.status == "ok" for r in n.records)
        ]
        return usable[: options.neighbours]

    def _doubt(self, query: TaskQuery) -> str:
        if not query.neighbours:
            return f"no TVM schedule was measured on a {self.device.fingerprint} yet; collect some here"
        if not query.candidates:
            why = next(iter(query.refused.values()), "there are none")
            return f"no trace of a neighbour fits: {why}"
        return ""

    # ------------------------------------------------------------------ measuring

    def measure(self, queries: Sequence[TaskQuery], server: BenchServer) -> None:
        """Verify and time the first k candidates of every task; pick winners."""
        if self.options.budget_s is not None:
            self.deadline = time.monotonic() + self.options.budget_s
        pace = Pace(budget_s=min(Pace().budget_s, FINALS_S / max(len(queries), 1)))
        for position, query in enumerate(queries, start=1):
            self.notify(f"task {position} of {len(queries)}: {query.task.name}")
            try:
                query.baseline = as_measurement(server.baseline(query.number))
                if not query.reason and time.monotonic() > self.deadline:
                    query.reason = OUT_OF_TIME
                if not query.reason:
                    self._try(query, server)
                finalists = _best(query.tried)
                if finalists or self.libraries:
                    self._final(query, finalists, server, pace)
            except MeasureError as error:
                query.reason = f"the task cannot be measured: {error}"
        spent_s = [(q.baseline.runtime_s or 0.0) * q.task.calls if q.baseline else 0.0 for q in queries]
        for query, one_s in zip(queries, spent_s, strict=True):
            query.share = one_s / sum(spent_s) if one_s else None

    def _try(self, query: TaskQuery, server: BenchServer) -> None:
        assert query.baseline is not None
        tried = self.try_first(query, server, query.baseline.runtime_s or math.inf)
        query.tried = [(candidate, as_measurement(outcome, query.baseline)) for candidate, outcome in tried]

    def try_first(
        self, query: TaskQuery, server: BenchServer, best_s: float = math.inf
    ) -> list[tuple[TraceCandidate, Outcome]]:
        """Measure k candidates in rounds, the first as they are ranked; these then say more about the others.
        best_s: of the unscheduled function."""
        ends = [max(math.ceil(share * self.options.k), min(FIRST, self.options.k)) for share in ROUNDS]
        tried: list[tuple[TraceCandidate, Outcome]] = []
        order = hedged(query.candidates, ends[0]) if ends[0] >= HEDGED else query.candidates
        for end in ends:
            chosen = order[: end - len(tried)]
            if chosen:
                outcomes = server.measure(query.number, [c.program for c in chosen], best_s)
                tried += zip(chosen, outcomes, strict=True)
                best_s = min([best_s, *(o.runtime_s for o in outcomes if o.runtime_s is not None)])
            if len(tried) < self.options.k:
                known = [(candidate, outcome.runtime_s) for candidate, outcome in tried]
                with quiet():
                    order = ranked_again(query.task, self.target, self.model, order[len(chosen) :], known)
        return tried

    def _final(self, query: TaskQuery, finalists: Sequence[int], server: BenchServer, pace: Pace) -> None:
        """The best of the tried, in turn with the unscheduled function and with other libraries."""
        modules = [query.tried[n][0].program for n in finalists]
        with (
            server.rehearsed(query.number, modules) as (outcomes, turns),
            joined(self.libraries, query.task) as (others, query.beside),
        ):
            found = in_turns({**{str(player): turn for player, turn in turns.items()}, **others}, pace)
        query.beside |= {name: found[name] for name in others}
        query.baseline = found["0"]
        for player, n in enumerate(finalists, start=1):
            candidate, _ = query.tried[n]
            measured = (
                beside(found[str(player)], query.baseline)
                if player in turns
                else Measurement(outcomes[player].status, detail=outcomes[player].detail)
            )
            query.tried[n] = candidate, measured
        query.winner = fastest([query.tried[n] for n in finalists])
        if query.winner is None and not query.reason:
            query.reason = "none of the candidates was faster than the baseline beyond noise"

    # ------------------------------------------------------------------ reporting

    def _report(
        self, queries: Sequence[TaskQuery], skipped: Mapping[str, str], whole: WholeTimes | None, note: str
    ) -> Retrieval:
        measured = [q for q in queries if q.timings is not None]
        baseline = _total([(q.timings[0], q.task.calls) for q in measured if q.timings])
        tuned = _total([(q.timings[1], q.task.calls) for q in measured if q.timings])
        if whole is not None:
            baseline, tuned = timing(whole.baseline), timing(whole.tuned)
        won = any(q.winner for q in queries)
        speedup = baseline.runtime_s / tuned.runtime_s if baseline and tuned else None
        interval = None
        if baseline and tuned and won:
            interval = (
                baseline.interval_s[0] / tuned.interval_s[1],
                baseline.interval_s[1] / tuned.interval_s[0],
            )
        return Retrieval(
            kernel=self.kernel,
            device=self.device.fingerprint,
            baseline_name=BASELINE,
            baseline_note="",
            baseline=baseline,
            tuned=tuned,
            speedup=speedup,
            speedup_interval=interval,
            verified=bool(measured or whole),
            kept_baseline=not won,
            note="; ".join(filter(None, [*self._notes(queries, won, whole), note])),
            candidates_measured=sum(q.measured for q in queries),
            wall_s=time.monotonic() - self.started,
            nests=[q.report(self.options.k) for q in queries],
            skipped=[{"part": name, "reason": reason} for name, reason in skipped.items()],
            stages_s=dict(self.stages.seconds),
            beside=whole.beside if whole else [],
        )

    def _notes(self, queries: Sequence[TaskQuery], won: bool, whole: WholeTimes | None) -> list[str]:
        words = []
        if not queries:
            words.append("the kernel has no task that can be tuned")
        elif self.server is None:
            words.append("nothing was measured (--model-only)")
        elif not won and not (whole and whole.note):
            words.append("no schedule was faster than the baseline beyond noise; the baseline is kept")
        if len(queries) > 1 and self.server is not None and whole is None:
            words.append("times are those of each task alone, times its calls, added up")
        return words


def _best(tried: Sequence[tuple[TraceCandidate, Measurement]]) -> list[int]:
    """Numbers of the fastest."""
    right = sorted((m.runtime_s, n) for n, (_, m) in enumerate(tried) if m.runtime_s is not None)
    return [n for _, n in right[:FINALISTS]]


def _total(parts: Sequence[tuple[Timing, int]]) -> Timing | None:
    """Of all tasks, each as often as it is called; the ends of the intervals added up hold the sum."""
    if not parts:
        return None
    low, high = (sum(t.interval_s[end] * calls for t, calls in parts) for end in (0, 1))
    return Timing(sum(t.runtime_s * calls for t, calls in parts), (low, high))
