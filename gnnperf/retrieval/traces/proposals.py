"""From neighbours to candidates: their traces, transferred to a task, and schedules drawn from MetaSchedule's
rules.

The traces of other kinds of operators seldom fit, or do little, but what the cost model has learned from all
of them tells good from bad: drawn schedules are ranked with those that were transferred. Both are made by
processes of their own, on all processors that there are: what TVM does to one of them costs no more than it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from gnnperf.errors import NotApplicable, UnsupportedConstruct, first_line
from gnnperf.frontends.tvm import TvmTask, scheduled_graph
from gnnperf.frontends.tvm.spaces import DesignSpace, seed_of, tune_context
from gnnperf.graph import EncodedGraph, encode
from gnnperf.measure.confine import available_threads
from gnnperf.measure.workers import spread
from gnnperf.retrieval.traces.candidates import TraceCandidate, of_schedule
from gnnperf.schedules.traces import TraceDocument, other_tiles, program_key, replay, trace_document, transfer
from gnnperf.store import Neighbour, Record

TRACES, PROPOSALS = 6, 4
"""Traces taken from a neighbour, its fastest first; proposals for each."""
POOL = 160
"""Transferred candidates that are enough to choose from."""
LOTS, LOT = 4, 24
"""Schedules are drawn in so many lots of so many: one for every task, the others where less than a pool can
be transferred. (Beside a pool, one of 96 that were drawn had the highest score in 1 of 15 tasks.)"""
VARIANTS = 24
"""Candidates made of one that was measured."""
ATTEMPTS = 2
"""For each: few of most tasks' samples fail in post-processing."""
DRAWN, VARIANT = "drawn", "variant"
"""How the tiles of candidates were decided that are not transferred."""
RULES = "MetaSchedule's rules"
"""Stands for the neighbour of a drawn candidate."""


@dataclass
class CandidatePool:
    """candidates: all different. refused: why a neighbour's traces do not fit, by the neighbour's kernel."""

    candidates: list[TraceCandidate]
    refused: dict[str, str]


class _Made(NamedTuple):
    """A schedule without TVM, as it goes from process to process."""

    document: TraceDocument
    key: int
    policy: str
    turn: int
    encoded: EncodedGraph


@dataclass
class _Lot:
    """What one process makes. refused: why something is missing. seen: keys of what it, or another, made."""

    made: list[_Made] = field(default_factory=list)
    refused: str = ""
    seen: set[int] = field(default_factory=set)

    def add(self, schedule: Any, document: TraceDocument, policy: str, turn: int) -> None:
        """Describe a schedule, if the same was not seen."""
        key = program_key(schedule.mod)
        if key in self.seen:
            return
        self.seen.add(key)
        try:
            graph = encode(scheduled_graph(schedule.mod))
        except UnsupportedConstruct as reason:  # the IR lacks what the schedule does
            self.refuse(reason)
            return
        self.made.append(_Made(document, key, policy, turn, graph))

    def refuse(self, reason: Exception) -> None:
        """Something is missing; the first reason is kept."""
        self.refused = self.refused or first_line(reason)


KILLED = _Lot(refused="the process that tried its traces was killed")


def propose(task: TvmTask, neighbours: Sequence[Neighbour], target: Any, pool: int = POOL) -> CandidatePool:
    """The neighbours' traces, nearest first, transferred to a task until there are `pool` candidates; then
    drawn ones, four times as many where there are fewer. The same ones every time."""
    found = CandidatePool([], {})
    if not neighbours:
        return found
    context, known = tune_context(task.module, target), set[int]()
    drawing = _drawing(task, target)
    done, wave = 0, 1 + pool // (TRACES * PROPOSALS)  # neighbours that most often are enough
    drawn: list[_Lot] = []
    while done < len(neighbours):
        near = neighbours[done : done + wave]
        seen = set(known)  # by one process: what it has made need not be described again
        jobs = [
            partial(_transferred, neighbour, task.module, target, done + n, len(neighbours), seen)
            for n, neighbour in enumerate(near)
        ]
        beside = drawing[:1] if done == 0 else []  # the first wave may be the only one
        lots = _made_by([*jobs, *beside])
        drawn += lots[len(near) :]
        for neighbour, lot in zip(near, lots, strict=False):
            nest = neighbour.nest
            if len(found.candidates) < pool:
                found.candidates += _new(lot, context, known, nest.digest, nest.kernel, neighbour.distance)
                if lot.refused:
                    found.refused.setdefault(nest.kernel, lot.refused)
        done += len(near)
        missing = pool - len(found.candidates)
        if missing <= 0:
            break
        wave = max(wave // 2, math.ceil(missing * done / max(1, len(found.candidates))))
    else:
        drawn += _made_by(drawing[1:])
    turns = itertools.count(max((candidate.turn for candidate in found.candidates), default=-1) + 1)
    for lot in drawn:
        for candidate in _new(lot, context, known, task.graph.digest, RULES, 0.0):
            found.candidates.append(replace(candidate, turn=next(turns)))
    return found


def _made_by(jobs: Sequence[Callable[[], _Lot]]) -> list[_Lot]:
    """What each makes, on all processors."""
    made = spread(jobs, available_threads())
    return [made.get(place, KILLED) for place in range(len(jobs))]


def variants(task: TvmTask, origin: TraceCandidate, target: Any) -> list[TraceCandidate]:
    """A task's candidate with the tiles of one loop changed to the next best: at most `VARIANTS`."""
    context = tune_context(task.module, target)
    try:
        documents = other_tiles(origin.schedule, context, VARIANTS)
    except Exception:  # NotApplicable, or what TVM raises: anything
        return []

    def made(document: TraceDocument, turn: int) -> _Lot:
        lot = _Lot()
        try:
            lot.add(replay(document, context), document, VARIANT, turn)
        except Exception as reason:  # the same
            lot.refuse(reason)
        return lot

    jobs = [partial(made, document, origin.turn + n) for n, document in enumerate(documents, start=1)]
    found, known = spread(jobs, available_threads()), {origin.key}
    return [
        candidate
        for _, lot in sorted(found.items())
        for candidate in _new(lot, context, known, origin.neighbour, origin.neighbour_kernel, origin.distance)
    ]


def adopted(task: TvmTask, measured: TraceCandidate, target: Any) -> TraceCandidate:
    """A candidate of a task with the same graph, for this one. Raises NotApplicable."""
    context = tune_context(task.module, target)
    try:
        schedule = replay(measured.schedule, context)
    except NotApplicable:  # its blocks have other names
        schedule = transfer(measured.schedule, context, 1)[0].schedule
    return of_schedule(
        schedule, task.module, target, policy=measured.policy, neighbour=measured.neighbour,
        neighbour_kernel=measured.neighbour_kernel, distance=measured.distance,
    )  # fmt: skip


def best_traces(records: Sequence[Record], count: int = TRACES) -> Iterator[Record]:
    """The fastest traces that were measured right, each once."""
    good = [
        r
        for r in records
        if r.schedule_kind == TraceDocument.kind and r.status == "ok" and r.runtime_s is not None
    ]
    seen: set[str] = set()
    for record in sorted(good, key=lambda r: r.runtime_s or 0.0):
        if len(seen) == count:
            return
        if record.schedule not in seen:
            seen.add(record.schedule)
            yield record


def _transferred(
    neighbour: Neighbour, module: Any, target: Any, near: int, neighbours: int, seen: set[int]
) -> _Lot:
    """The neighbour's traces, on another module."""
    context, lot = tune_context(module, target), _Lot(seen=seen)
    for rank, record in enumerate(best_traces(neighbour.records)):
        try:
            proposals = transfer(TraceDocument.from_json(record.schedule), context, PROPOSALS)
        except Exception as reason:  # NotApplicable, or what TVM raises: anything
            lot.refuse(reason)
            continue
        for variant, proposal in enumerate(proposals):
            turn = near + rank + neighbours * variant
            lot.add(proposal.schedule, proposal.document, proposal.policy, turn)
    return lot


def _drawing(task: TvmTask, target: Any) -> list[Callable[[], _Lot]]:
    """Lots to draw: none where MetaSchedule's rules fail on the task."""
    try:
        space = DesignSpace(task.module, target)
    except Exception:  # whatever TVM raises
        return []
    return [partial(_drawn, space, target, seed_of(f"{task.graph.digest} {lot}")) for lot in range(LOTS)]


def _drawn(space: DesignSpace, target: Any, seed: int) -> _Lot:
    """Schedules drawn at random from a design space."""
    lot = _Lot()
    try:
        for sample in space.sample(LOT, seed, ATTEMPTS):
            lot.add(sample.sch, trace_document(sample.sch, space.module, target), DRAWN, 0)
    except Exception as reason:  # whatever TVM raises
        lot.refuse(reason)
    return lot


def _new(
    lot: _Lot, context: Any, known: set[int], neighbour: str, kernel: str, distance: float
) -> Iterator[TraceCandidate]:
    """What is not known yet of a lot, as candidates; it then is."""
    for made in lot.made:
        if made.key not in known:
            known.add(made.key)
            yield TraceCandidate(
                partial(replay, made.document, context),
                made.document,
                made.key,
                made.policy,
                neighbour,
                kernel,
                distance,
                made.turn,
                made.encoded,
            )
