"""The main job: retrieve schedules for every nest of a kernel, measure them, keep what wins.

extract nests -> embed -> nearest records -> rank -> apply -> verify -> measure beside the baseline ->
accept beyond noise -> splice -> verify and measure the whole kernel (design, section 6).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.backends.cpp.cases import UnitCase, WholeKernel, capture_for_graphs, unit_graph
from gnnperf.backends.cpp.trials import Bench
from gnnperf.devices import DeviceSpec
from gnnperf.errors import GnnperfError
from gnnperf.frontends.dace import BaselineName, DaceKernel, capture_inputs
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Compiler, Measurement, Runner, Source
from gnnperf.nn import Bundle
from gnnperf.retrieval.assemble import Assembly, assemble
from gnnperf.retrieval.measured import Stages, fastest
from gnnperf.retrieval.neighbours import Calibration, nearest
from gnnperf.retrieval.query import Query
from gnnperf.retrieval.ranking import Candidate, rank
from gnnperf.retrieval.report import Retrieval, Timing
from gnnperf.schedules.recipes import Recipe
from gnnperf.store import Store

POOL = 24
"""Candidates ranked per nest, at least; those that do not fit or lower to the same code give way to the
next."""
WORTHLESS_SHARE = 0.005
"""A nest below this share of the kernel is not worth measuring."""

OUT_OF_TIME = "the time budget ended before this nest was tried"
NOTHING_TO_TUNE = "the kernel has no loop nest that can be tuned"


@dataclass(frozen=True)
class Options:
    """k: measured candidates per nest. neighbours: nests consulted. budget_s: wall time for measuring
    candidates, or None. model_only: rank, measure nothing."""

    k: int = 5
    neighbours: int = 48
    baseline: BaselineName = "auto"
    budget_s: float | None = None
    model_only: bool = False


@dataclass
class Transfer:
    """One run of the main job. `notify(text)` says what is being done.

    started: `time.monotonic()` when the whole work began, for what came before (loading the kernel).
    """

    kernel: DaceKernel
    bundle: Bundle
    stores: Sequence[Store]
    device: DeviceSpec
    calibration: Calibration
    options: Options
    notify: Callable[[str], None] = lambda _: None
    started: float = field(default_factory=time.monotonic)
    stages: Stages = field(default_factory=Stages)

    def run(self, compiler: Compiler, runner: Runner) -> tuple[Retrieval, Any, list[Query]]:
        """(report, tuned SDFG or None where the baseline was kept, the queries with their measurements)."""
        self.stages.seconds["loading"] = time.monotonic() - self.started
        self.notify("reading the kernel's inputs")
        capture = capture_for_graphs if self.options.model_only else capture_inputs
        self.stages.timed("inputs", lambda: capture(self.kernel, compiler, runner))
        queries = self.ask()
        if self.options.model_only:
            note = "nothing was measured (--model-only)" if queries else NOTHING_TO_TUNE
            return self._report(queries, None, None, note), None, queries
        whole = self.stages.timed(
            "baseline", lambda: WholeKernel.prepare(self.kernel, self.options.baseline, compiler, runner)
        )
        self.stages.timed("candidates", lambda: self.measure(queries, whole, compiler, runner))
        if not any(q.winner for q in queries):
            return self._report(queries, whole, None, _why_kept(queries)), None, queries
        self.notify("measuring the whole kernel")
        tuned, note = self.stages.timed(
            "whole", lambda: assemble(self.kernel, queries, whole, compiler, runner)
        )
        return self._report(queries, whole, tuned, note), tuned.sdfg if tuned else None, queries

    # ------------------------------------------------------------------ asking

    def ask(self) -> list[Query]:
        """Graphs, embeddings, neighbours and ranked candidates of all nests."""
        units = [u for u in self.kernel.units if u.skipped is None and u.nest.has_loops]
        queries = self.stages.timed("graphs", lambda: [Query(u, unit_graph(u)) for u in units])
        if not queries:
            return []
        vectors = self.stages.timed("embedding", lambda: self.bundle.embed([q.graph for q in queries]))
        fingerprint, pool = self.device.fingerprint, max(POOL, 2 * self.options.k)

        def search() -> None:
            for query, vector in zip(queries, vectors, strict=True):
                query.neighbours = nearest(
                    self.stores, vector, self.options.neighbours, self.bundle.encoder_id, fingerprint
                )
                query.candidates = rank(query.neighbours, pool, partial(self._predict, query.graph))
                query.reason = self._doubt(query)

        self.stages.timed("search", search)
        return queries

    def _predict(self, graph: ProgramGraph, recipes: Sequence[Recipe]) -> NDArray[np.float32]:
        """What the retrieval head expects of recipes on a nest, f32[s]."""
        return self.bundle.score([graph], recipes)[0]

    def _doubt(self, query: Query) -> str:
        if not query.candidates:
            return f"nothing was measured on a {self.device.fingerprint} yet; run `gnnperf collect` here"
        distance, limit = query.neighbours[0].distance, self.calibration.max_distance
        if distance > limit:
            return f"nothing near: the nearest nest is at distance {distance:.3f}, trusted up to {limit:.3f}"
        return ""

    # ------------------------------------------------------------------ measuring

    def measure(self, queries: list[Query], whole: WholeKernel, compiler: Compiler, runner: Runner) -> None:
        """Verify and time the first k distinct candidates of every nest; pick winners."""
        budget_s = self.options.budget_s
        deadline = math.inf if budget_s is None else time.monotonic() + budget_s
        open_queries = [q for q in queries if not q.reason]
        for number, query in enumerate(open_queries):
            if time.monotonic() > deadline:
                query.reason = OUT_OF_TIME
                continue
            self.notify(f"nest {number + 1} of {len(open_queries)}: {query.unit.nest.name}")
            try:
                query.case = UnitCase.prepare(query.unit, self.options.baseline, compiler, runner)
            except GnnperfError as error:
                query.reason = f"the nest cannot be measured alone: {error}"
                continue
            query.share = min(1.0, query.case.baseline_s * (query.unit.executions or 1) / whole.baseline_s)
            if query.share < WORTHLESS_SHARE:
                query.reason = f"{query.share:.2%} of the kernel's runtime: not worth a trial"
            elif time.monotonic() > deadline:
                query.reason = OUT_OF_TIME
            else:
                self._try(query, Bench(query.case.case, compiler, runner, query.case.limits), deadline)

    def _try(self, query: Query, bench: Bench, deadline: float) -> None:
        chosen = _first_distinct(query.candidates, bench, self.options.k)
        for candidate, measurement in zip(chosen, bench.measure(list(chosen.values())), strict=True):
            query.tried.append((candidate, measurement))
            # All are compiled together, so the first is measured however long that took.
            if measurement.status != "not_applicable" and time.monotonic() > deadline:
                break
        query.winner = fastest(query.tried)
        if query.winner is None:
            query.reason = "none of the candidates was faster than the baseline beyond noise"

    # ------------------------------------------------------------------ reporting

    def _report(
        self,
        queries: list[Query],
        whole: WholeKernel | None,
        assembly: Assembly | None,
        note: str,
    ) -> Retrieval:
        baseline = None if whole is None else Timing(whole.baseline_s, whole.baseline_interval_s)
        timing = baseline
        speedup: float | None = None if whole is None else 1.0
        interval: tuple[float, float] | None = None
        tuned_by: Mapping[int, Recipe] = {}
        if assembly is not None:
            tuned_by = assembly.schedules
            tuned = assembly.measurement
            assert tuned.runtime_s is not None and tuned.interval_s is not None
            assert tuned.baseline_s is not None and tuned.baseline_interval_s is not None
            baseline = Timing(tuned.baseline_s, tuned.baseline_interval_s)
            timing = Timing(tuned.runtime_s, tuned.interval_s)
            speedup, interval = tuned.speedup, tuned.speedup_interval
        name, why = (
            (whole.baseline_name, whole.baseline_note) if whole else (f"dace-{self.options.baseline}", "")
        )
        return Retrieval(
            kernel=self.kernel.name,
            device=self.device.fingerprint,
            baseline_name=name,
            baseline_note=why,
            baseline=baseline,
            tuned=timing,
            speedup=speedup,
            speedup_interval=interval,
            verified=whole is not None,
            kept_baseline=assembly is None,
            note=note,
            candidates_measured=sum(q.measured for q in queries),
            wall_s=time.monotonic() - self.started,
            nests=[
                q.report(self.options.k, tuned_by.get(q.unit.index), self.calibration.confidence)
                for q in queries
            ],
            skipped=[
                *({"part": part.label, "reason": part.reason} for part in self.kernel.skipped),
                *({"part": u.name, "reason": u.skipped} for u in self.kernel.units if u.skipped is not None),
            ],
            stages_s=dict(self.stages.seconds),
        )


def _first_distinct(
    candidates: Sequence[Candidate], bench: Bench, k: int
) -> dict[Candidate, Source | Measurement]:
    """The first k candidates that apply and lower to code of their own; before and between them, those
    that do not apply."""
    chosen: dict[Candidate, Source | Measurement] = {}
    codes: set[str] = set()
    for candidate in candidates:
        if len(codes) == k:
            break
        prepared = bench.prepare(candidate.schedule)
        if isinstance(prepared, Source):
            if prepared.text in codes:
                continue
            codes.add(prepared.text)
        chosen[candidate] = prepared
    return chosen


def _why_kept(queries: Sequence[Query]) -> str:
    """Why there is no winner at all."""
    if not queries:
        return f"{NOTHING_TO_TUNE}; the baseline is kept"
    if not any(q.tried for q in queries):
        return "nothing was tried; the baseline is kept"
    return "no schedule was faster than the baseline beyond noise; the baseline is kept"
