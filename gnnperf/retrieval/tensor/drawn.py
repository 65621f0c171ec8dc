"""Candidates that no neighbour has: schedules of the task drawn from MetaSchedule's rules.

The traces of other kinds of operators seldom fit, or do little, but what the cost model has learned from all
of them tells good from bad. Drawn schedules are ranked with those that were transferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gnnperf.frontends.tvm import TvmTask
from gnnperf.retrieval.tensor.candidates import TraceCandidate, own_candidate
from gnnperf.tuning.tensor.spaces import Space, seed_of

DRAWN = 96
"""Schedules drawn for a task: one to three seconds, with their ranking."""
ATTEMPTS = 2
"""For each: few of most tasks' samples fail in post-processing."""
POLICY, SOURCE = "drawn", "MetaSchedule's rules"
"""How the tiles of such a candidate were decided, and what stands for its neighbour."""


def drawn(task: TvmTask, target: Any, known: Sequence[TraceCandidate] = ()) -> list[TraceCandidate]:
    """Schedules of a task drawn at random, each once and none that is known; the same ones every time. None
    where MetaSchedule's rules fail on the task."""
    keys = {candidate.key for candidate in known}
    last = max((candidate.turn for candidate in known), default=-1) + 1
    found: list[TraceCandidate] = []
    try:
        samples = [*Space(None, task.module, target).sample(DRAWN, seed_of(task.graph.digest), ATTEMPTS)]
    except Exception:  # whatever TVM raises
        return []
    for sample in samples:
        candidate = own_candidate(task, target, sample.sch, POLICY, SOURCE, last + len(found))
        if candidate.key not in keys and candidate.has_graph:
            keys.add(candidate.key)
            found.append(candidate)
    return found
