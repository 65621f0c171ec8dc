"""From neighbours to candidates: their traces, transferred to a task, in order of promise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm import (
    TraceDocument,
    TvmTask,
    program_key,
    scheduled_graph,
    trace_document,
    transfer,
)
from gnnperf.frontends.tvm.sketches import anchor_tiles, sketch_of
from gnnperf.frontends.tvm.vector_math import vector_math
from gnnperf.frontends.user_files import first_line
from gnnperf.graph import ProgramGraph
from gnnperf.retrieval.portfolio import portfolio
from gnnperf.retrieval.tensor.contexts import context_of
from gnnperf.store import Neighbour, Record

KIND = "trace"
"""Of the store's schedules that this package reads and writes."""
TRACES, PROPOSALS = 6, 4
"""Traces taken from a neighbour, its fastest first; proposals for each."""
POOL = 160
"""Candidates that are enough to choose from."""
SHORTLIST = 48
"""Candidates with the highest scores, of which a portfolio is made."""
VARIANTS = 24
"""Variants of the fastest measured candidate that join those still to be tried."""
FAILED = 1.0
"""A candidate that failed is taken for so many nats slower than the slowest that ran."""
LOOPS, LEVELS = 8, 4
"""Of the tiles that are compared."""


class CostModel(Protocol):
    """What ranks scheduled graphs of one task."""

    def score(self, graphs: Sequence[ProgramGraph]) -> NDArray[np.float32]:
        """f32[n], the most promising the highest."""


@dataclass(frozen=True)
class TraceCandidate:
    """A schedule to try. schedule: a `tvm.s_tir.Schedule` of the task's module. policy: how its tiles were
    decided. turn: its place in an order by neighbours alone: the nearest ones' fastest traces first, in their
    most faithful form."""

    schedule: Any
    document: TraceDocument
    policy: str
    neighbour: str
    neighbour_kernel: str
    distance: float
    turn: int
    score: float = 0.0

    @cached_property
    def graph(self) -> ProgramGraph:
        """The scheduled graph. Raises UnsupportedConstruct where the IR lacks what the schedule does."""
        return scheduled_graph(self.schedule.mod)

    @property
    def has_graph(self) -> bool:
        """Whether `graph` is there."""
        try:
            return self.graph is not None
        except UnsupportedConstruct:
            return False

    @cached_property
    def key(self) -> int:
        """The same for schedules that come to the same program."""
        return program_key(self.schedule.mod)

    @cached_property
    def program(self) -> Any:
        """The scheduled IRModule as it is compiled, with exponentials that run in vectors."""
        return vector_math(self.schedule.mod)

    @property
    def words(self) -> str:
        """For people."""
        return f"{describe(self.document)} ({self.policy})"


@dataclass
class Pool:
    """candidates: all different. refused: why a neighbour's traces do not fit, by the neighbour's kernel."""

    candidates: list[TraceCandidate]
    refused: dict[str, str]


def propose(task: TvmTask, neighbours: Sequence[Neighbour], target: Any, pool: int = POOL) -> Pool:
    """The neighbours' traces, nearest first, transferred to a task until there are `pool` candidates."""
    context = context_of(task.module, target)
    found, seen = Pool([], {}), set[int]()
    for near, neighbour in enumerate(neighbours):
        if len(found.candidates) >= pool:
            break
        for rank, record in enumerate(best_traces(neighbour.records)):
            try:
                document = TraceDocument.from_json(record.schedule)
                proposals = transfer(document, context, PROPOSALS)
            except Exception as reason:  # NotApplicable, or what TVM raises: anything
                found.refused.setdefault(neighbour.nest.kernel, first_line(reason))
                continue
            for variant, proposal in enumerate(proposals):
                key = program_key(proposal.schedule.mod)
                if key in seen:
                    continue
                seen.add(key)
                candidate = TraceCandidate(
                    schedule=proposal.schedule,
                    document=trace_document(proposal.schedule, task.module, target),
                    policy=proposal.policy,
                    neighbour=neighbour.nest.digest,
                    neighbour_kernel=neighbour.nest.kernel,
                    distance=neighbour.distance,
                    turn=near + rank + len(neighbours) * variant,
                )
                try:
                    candidate.graph  # noqa: B018
                except UnsupportedConstruct as reason:
                    found.refused.setdefault(neighbour.nest.kernel, str(reason))
                    continue
                found.candidates.append(candidate)
    return found


def own_candidate(
    task: TvmTask, target: Any, schedule: Any, policy: str, source: str, turn: int = 0
) -> TraceCandidate:
    """A schedule that no neighbour gave: the task is its own. source: what stands for its kernel."""
    return TraceCandidate(
        schedule=schedule,
        document=trace_document(schedule, task.module, target),
        policy=policy,
        neighbour=task.graph.digest,
        neighbour_kernel=source,
        distance=0.0,
        turn=turn,
    )


def best_traces(records: Sequence[Record], count: int = TRACES) -> Iterator[Record]:
    """The fastest traces that were measured right, each once."""
    good = [r for r in records if r.schedule_kind == KIND and r.status == "ok" and r.runtime_s is not None]
    seen: set[str] = set()
    for record in sorted(good, key=lambda r: r.runtime_s or 0.0):
        if len(seen) == count:
            return
        if record.schedule not in seen:
            seen.add(record.schedule)
            yield record


def ranked(candidates: Sequence[TraceCandidate], model: CostModel) -> list[TraceCandidate]:
    """In the order to try them: by the cost model, as a portfolio: the best of the first few counts."""
    return _in_order(scored(candidates, model))


def scored(candidates: Sequence[TraceCandidate], model: CostModel) -> list[TraceCandidate]:
    """The same candidates with the model's scores."""
    if not candidates:
        return []
    scores = model.score([c.graph for c in candidates])
    return [replace(c, score=float(s)) for c, s in zip(candidates, scores, strict=True)]


def _in_order(
    candidates: Sequence[TraceCandidate], measured: Sequence[tuple[TraceCandidate, float]] = ()
) -> list[TraceCandidate]:
    """The portfolio of scored candidates. measured: others, and their ln efficiencies."""
    by_score = sorted(candidates, key=lambda c: (-c.score, c.turn))
    compared = [*(c for c, _ in measured), *by_score[:SHORTLIST]]
    if not compared:
        return []
    scores = np.array([c.score for c in compared])
    features = np.stack([trace_features(c.document) for c in compared])
    order = portfolio(scores, features, len(compared), dict(enumerate(e for _, e in measured)))
    return [*(compared[int(n)] for n in order), *by_score[SHORTLIST:]]


def hedged(order: Sequence[TraceCandidate], count: int) -> list[TraceCandidate]:
    """The same order, but that the candidate with the first turn is among the first `count`, as the last of
    them if it was not; where only one is wanted, it is the best ranked."""
    found = list(order)
    first = min(range(len(found)), key=lambda n: found[n].turn, default=0)
    if 1 < count <= first:
        found.insert(count - 1, found.pop(first))
    return found


def ranked_again(
    task: TvmTask,
    target: Any,
    model: CostModel,
    left: Sequence[TraceCandidate],
    tried: Sequence[tuple[TraceCandidate, float | None]],
) -> list[TraceCandidate]:
    """In the order to try them once some were measured. The model is expected to err on like schedules as it
    erred on these; variants of the fastest, with one loop's tiles changed, join what is left.

    tried: candidates and their runtimes in seconds, None where they failed.
    """
    ran = [(runtime_s, n) for n, (_, runtime_s) in enumerate(tried) if runtime_s is not None]
    if not ran:
        return list(left)
    fastest = tried[min(ran)[1]][0]
    known = {candidate.key for candidate, _ in tried} | {candidate.key for candidate in left}
    new = [c for c in variants(task, target, fastest) if c.key not in known]
    slowest = math.log(max(ran)[0]) + FAILED
    measured = [(c, -(slowest if runtime_s is None else math.log(runtime_s))) for c, runtime_s in tried]
    return _in_order([*left, *scored(new, model)], measured)


def variants(task: TvmTask, target: Any, origin: TraceCandidate) -> Iterator[TraceCandidate]:
    """The candidate with the tiles of one loop changed to the next best."""
    try:
        proposals = transfer(origin.document, context_of(task.module, target), VARIANTS)
    except Exception:  # NotApplicable, or what TVM raises: anything
        return
    for turn, proposal in enumerate(proposals):
        candidate = replace(
            origin,
            schedule=proposal.schedule,
            document=trace_document(proposal.schedule, task.module, target),
            policy="variant",
            turn=origin.turn + turn,
        )
        if candidate.has_graph:
            yield candidate


def trace_features(document: TraceDocument) -> NDArray[np.float64]:
    """f64[LOOPS * LEVELS + 3], near for like traces of one task: logarithms of the tiles of the innermost
    loops, how far is unrolled, where results are written, and whether the reduction is split."""
    sketch, tiles = sketch_of(document), np.zeros((LOOPS, LEVELS))
    for row, tile in zip(tiles, anchor_tiles(document)[::-1], strict=False):
        factors = tile.factors[::-1][:LEVELS]
        row[: len(factors)] = np.log2(factors)
    level = -1 if sketch.write_level is None else sketch.write_level
    return np.array([*tiles.ravel(), np.log2(1 + _unrolled(document)), level, sketch.factored])


def describe(document: TraceDocument) -> str:
    """Tiles of the loops around the anchor and how far is unrolled, in a few words."""
    sketch = sketch_of(document)
    tiles = " ".join("x".join(map(str, t.factors)) for t in anchor_tiles(document))
    words = [sketch.structure or ("tiles" if tiles else "loops fused"), tiles]
    if sketch.factored:
        words.append("reduction split")
    if sketch.write_level is not None:
        words.append(f"written at level {sketch.write_level}")
    unrolled = _unrolled(document)
    if unrolled:
        words.append(f"unrolled up to {unrolled}")
    return " ".join(filter(None, words))


def _unrolled(document: TraceDocument) -> int:
    values: dict[str, int] = {}
    for position, (kind, inputs, attributes, outputs) in enumerate(document.instructions):
        if kind == "SampleCategorical" and position in document.decisions:
            values[outputs[0]] = int(attributes[0][document.decisions[position]])
        elif kind == "Annotate" and attributes[0].startswith("meta_schedule.unroll"):
            return values.get(inputs[1], 0) if isinstance(inputs[1], str) else int(inputs[1])
    return 0
