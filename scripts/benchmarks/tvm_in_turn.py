"""Schedules of a workload in one process of TVM, and PyTorch in another, timed in turn.

Nothing here imports torch before it measures: the processes are forked before."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.machine import setup
from benchmarks.metaschedule import SearchTrial
from gnnperf.backends.tvm.competitors import TORCH, torch_operator
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.frontends.tvm.target import host_mcpu
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.measure import Measurement
from gnnperf.measure.interleaved import Pace, in_turns
from gnnperf.measure.outcome import Outcome
from gnnperf.measure.supervisor import Failed
from gnnperf.schedules.traces import program_key

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.program import TvmProgram
    from gnnperf.retrieval import Pipeline
    from gnnperf.retrieval.query import Query
    from gnnperf.session import Session

P = TypeVar("P", bound="Pipeline")

DEFAULT = "tvm-default"
BYTES = ("matmul_int8", "conv2d_int8")
"""Kinds that PyTorch has no plain call for."""

Tried = Sequence[tuple[Any, Outcome | Measurement]]
"""Scheduled modules, and what came of measuring them."""


def timed_in_turn(
    server: BenchServer,
    number: int,
    workload: TvmWorkload,
    modules: Mapping[str, Any],
    target: Any,
    pace: Pace,
    beside_torch: bool,
) -> dict[str, Measurement]:
    """A measurement of the unscheduled function, of every schedule by its name, and of PyTorch where it has
    the operator; contenders with the same schedule share one. What fails has a status and no time."""
    players = {DEFAULT: "0"}
    distinct: dict[int, int] = {}
    chosen: list[Any] = []
    for name, module in modules.items():
        key = program_key(module)
        if key not in distinct:
            chosen.append(module)
            distinct[key] = len(chosen)
        players[name] = str(distinct[key])
    with server.rehearsed(number, chosen) as (outcomes, turns), ExitStack() as stack:
        calls = {str(n): turn for n, turn in turns.items()}
        failed = {str(n): Measurement(o.status, detail=o.detail) for n, o in enumerate(outcomes)}
        if beside_torch and workload.kind not in BYTES:
            try:
                calls[TORCH] = torch_operator(workload, workload.build(), target, stack)
            except Failed as failure:
                failed[TORCH] = failure.measurement
            players[TORCH] = TORCH
        found = in_turns(calls, pace)
    return {name: found.get(player) or failed[player] for name, player in players.items()}


def raced(server: BenchServer, number: int, tried: Tried) -> Any:
    """The module of the fastest; None where none was right. The first few are timed once more, in turn, as
    retrieval does: of many single measurements the lowest is the luckiest, too."""
    from gnnperf.backends.tvm.executor import FINALISTS

    right = [(outcome.runtime_s, n) for n, (_, outcome) in enumerate(tried) if outcome.runtime_s]
    modules = [tried[n][0] for _, n in sorted(right)[:FINALISTS]]
    if len(modules) < 2:
        return modules[0] if modules else None
    with server.rehearsed(number, modules) as (_, turns):
        found = in_turns({str(n): turn for n, turn in turns.items() if n > 0}, Pace())
    times = [(m.runtime_s, int(name)) for name, m in found.items() if m.runtime_s]
    return modules[min(times)[1] - 1] if times else modules[0]


def ratio(row: Mapping[str, Any], above: str, below: str) -> float | None:
    """Of two figures of a row; None where one is missing."""
    return row[above] / row[below] if row.get(above) and row.get(below) else None


def program_of(workloads: Sequence[TvmWorkload], target: Any) -> TvmProgram:
    """All workloads, as the tasks of one program, in their order."""
    from gnnperf.frontends.tvm import TvmTask
    from gnnperf.frontends.tvm.program import TvmProgram

    tasks = [TvmTask(workload.name, workload.build()) for workload in workloads]
    return TvmProgram("workloads", tasks, target)


def about_workload(workloads: Sequence[TvmWorkload], name: str) -> dict[str, Any]:
    """The fields of a row that say which workload it is of."""
    return next({"workload": w.name, "kind": w.kind} for w in workloads if w.name == name)


def tvm_setup(*packages: str) -> dict[str, Any]:
    """The machine, and versions of TVM, of its competitors and of other packages."""
    return {**setup("apache-tvm", "torch", "xgboost-cpu", *packages), "mcpu": host_mcpu()}


def first_candidates(
    session: Session, program: TvmProgram, number: int, server: BenchServer, k: int, **about: Any
) -> tuple[Query, list[tuple[Any, Measurement]]]:
    """Task `number` of a program, as `retrieve` asks about it, and its first k candidates, measured; the very
    task is not among the neighbours. server: knows the tasks by the same numbers. about: other fields of the
    proposer."""
    from gnnperf.retrieval import Options, Pipeline

    with _asked(session, program, number, server, Pipeline, about, options=Options(k=k)) as found:
        pipeline, query, bench = found
        return query, pipeline.try_first(query, bench)


def tuned(
    session: Session, program: TvmProgram, number: int, server: BenchServer, trials: int
) -> list[SearchTrial]:
    """What `gnnperf tune` tries of a task, the proposals counted with its time; arguments as of
    `first_candidates`."""
    from gnnperf.retrieval.tuning import Tuning

    started_s, after_s = time.monotonic(), list[float]()

    def advance(count: int, _: str) -> None:
        after_s.extend([time.monotonic() - started_s] * count)

    with _asked(session, program, number, server, Tuning, {}, trials=trials, advance=advance) as found:
        pipeline, query, bench = found
        tried = pipeline.search(query, bench).found
    return [
        SearchTrial(candidate.program, outcome, ended_s)
        for (candidate, outcome), ended_s in zip(tried, after_s, strict=True)
    ]


@contextmanager
def _asked(
    session: Session, program: TvmProgram, number: int, server: BenchServer, kind: type[P],
    proposer: Mapping[str, Any], **fields: Any,
) -> Iterator[tuple[P, Query, Any]]:  # fmt: skip
    """A pipeline of a kind, what it found for a task, and the task's bench. fields: of the pipeline."""
    from gnnperf.backends.tvm.executor import TvmExecutor

    task, executor = program.tasks[number], TvmExecutor(program, server=server)
    asking = {"exclude": {task.graph.digest}, **proposer}
    pipeline = session.pipeline(program, executor, kind, proposer=asking, **fields)
    assert isinstance(pipeline, kind)
    (query,) = pipeline.ask([number])
    with executor.opened(task, number) as bench:
        yield pipeline, query, bench
