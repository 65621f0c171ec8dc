"""What can be tried on a TVM task: a trace, the schedule that it makes, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm import scheduled_graph
from gnnperf.frontends.tvm.vector_math import vector_math
from gnnperf.graph import EncodedGraph, encode
from gnnperf.schedules.traces import TraceDocument, program_key, trace_document


@dataclass(frozen=True, eq=False)
class TraceCandidate:
    """A trace to try. make: gives the schedule that it makes. key: the same for schedules that come to the
    same program. policy: how its tiles were decided. neighbour, neighbour_kernel, distance: whose trace it
    was. turn: its place in an order by neighbours alone: the nearest ones' fastest traces first, in their
    most faithful form. encoded: the scheduled graph, where it is there already."""

    make: Callable[[], Any]
    schedule: TraceDocument
    key: int
    policy: str
    neighbour: str
    neighbour_kernel: str
    distance: float
    turn: int = 0
    encoded: EncodedGraph | None = None
    score: float = 0.0

    @cached_property
    def scheduled(self) -> Any:
        """The `tvm.s_tir.Schedule` of the task's module. Raises NotApplicable."""
        return self.make()

    @cached_property
    def program(self) -> Any:
        """The scheduled IRModule as it is compiled, with exponentials that run in vectors."""
        return vector_math(self.scheduled.mod)

    @cached_property
    def graph(self) -> EncodedGraph:
        """The scheduled graph. Raises UnsupportedConstruct where the IR lacks what the schedule does."""
        return encode(scheduled_graph(self.scheduled.mod)) if self.encoded is None else self.encoded

    @property
    def has_graph(self) -> bool:
        """Whether `graph` is there."""
        try:
            return self.graph is not None
        except UnsupportedConstruct:
            return False

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.schedule.describe()} ({self.policy})"


def of_schedule(schedule: Any, module: Any, target: Any, **about: Any) -> TraceCandidate:
    """The candidate that a TVM schedule of a module is. about: the candidate's other fields."""
    document, key = trace_document(schedule, module, target), program_key(schedule.mod)
    return TraceCandidate(lambda: schedule, document, key, **about)
