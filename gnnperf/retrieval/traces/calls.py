"""Calls of vendors' libraries as candidates for TVM functions, beside traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.vector_math import vector_math
from gnnperf.frontends.tvm.vendor.functions import calls_of, with_calls
from gnnperf.frontends.tvm.vendor.library import LIBRARIES, compiled_file
from gnnperf.schedules.calls import LibraryCall
from gnnperf.schedules.traces import TraceDocument
from gnnperf.store import Neighbour


@dataclass(frozen=True, eq=False)
class CallCandidate:
    """A call to try on a task. turn: after all traces, in an order by neighbours alone."""

    task: TvmTask
    schedule: LibraryCall
    cores: int
    distance: float = 0.0
    score: float = 0.0
    turn: int = 1 << 30

    @cached_property
    def program(self) -> Any:
        """The IRModule as it is compiled. Raises NotApplicable."""
        return vector_math(with_calls(self.task.module, self.schedule, self.cores))

    @property
    def neighbour(self) -> str:
        """The task itself: that it is a product is seen of it."""
        return self.task.graph.digest

    @property
    def neighbour_kernel(self) -> str:
        """The library."""
        return self.schedule.library

    @property
    def words(self) -> str:
        """For people."""
        return self.schedule.describe()


def calls_for(task: TvmTask, target: Any) -> list[CallCandidate]:
    """Those that fit a task. Raises GnnperfError where what calls the library cannot be compiled."""
    cores = int(target.attrs.get("num-cores", 1))
    found = [CallCandidate(task, call, cores) for call in calls_of(task.function, cores)]
    for candidate in found:
        candidate.program  # noqa: B018  # raises what there is to be said
        compiled_file(LIBRARIES[candidate.schedule.library])  # processes that build may not write there
    return found


def beside(
    calls: Sequence[CallCandidate], traces: Sequence[Any], neighbours: Sequence[Neighbour]
) -> list[Any]:
    """Both, in the order to try them: calls first, but where the nearest neighbour that both were tried on
    was faster by a trace."""
    for neighbour in neighbours:
        best_s: dict[str, float] = {}
        for record in neighbour.records:
            if record.status == "ok" and record.runtime_s is not None:
                known = best_s.get(record.schedule_kind, record.runtime_s)
                best_s[record.schedule_kind] = min(known, record.runtime_s)
        if {LibraryCall.kind, TraceDocument.kind} <= set(best_s):
            if best_s[TraceDocument.kind] < best_s[LibraryCall.kind]:
                return [*traces[:1], *calls, *traces[1:]]
            break
    return [*calls, *traces]
