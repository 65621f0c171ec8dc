"""Measure schedules of one workload in processes of their own: a crash or a hang costs one candidate.

The bench forks, per batch, a process that compiles candidates in two threads and forks those which run them
(`batch.py`); it ends what takes too long to compile, and starts again with what is left. A fork of a process
that has TVM loaded costs milliseconds, a new process seconds. Code is compiled into memory: no linker is
waited for.
"""

from __future__ import annotations

import math
import mmap
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnnperf.backends.tvm.batch import Batch, BenchLimits
from gnnperf.backends.tvm.kernel import Build, build_kernel
from gnnperf.backends.tvm.problem import (
    arguments,
    is_positive,
    made_inputs,
    positive,
    result_kinds,
    solved,
)  # fmt: skip
from gnnperf.devices import MachineLock
from gnnperf.errors import MeasureError
from gnnperf.measure.confine import available_threads, prefer_this_process
from gnnperf.measure.outcome import Outcome
from gnnperf.measure.problem import Problem
from gnnperf.measure.supervisor import Child, Failed, Message, Report, result_of
from gnnperf.measure.verification import Evidence

_TOGETHER = 8
"""Candidates compiled by one process: so many are compiled again, at most, when one of them hangs."""

_LOOK_S = 0.2
"""How often the time of those that compile is looked at."""

_HANGS = 5
"""So many times the limit for compiling, in wall time, and it is taken to hang."""

_STUCK = 1.5
"""When so many times that limit pass with next to no processor time used, threads that compile together are
taken to wait for one another: their candidates are compiled again, each alone."""


class TraceBench:
    """Measures schedules of one unscheduled module. It forks: this process must not run threads.

    Attributes:
        baseline: the unscheduled function, which is what TVM's default pipeline runs on a CPU.
    """

    def __init__(
        self,
        module: Any,
        target: Any,
        limits: BenchLimits | None = None,
        build: Build = build_kernel,
        seed: int = 0,
        time_baseline: bool = True,
    ) -> None:
        """Raises MeasureError where the unscheduled function itself cannot be run. time_baseline: off, it is
        run for its results only."""
        self.target, self.build, self.limits = target, build, limits or BenchLimits()
        inputs = made_inputs(module, seed)
        reference = {name: _shared(*kind) for name, kind in result_kinds(module).items()}

        def solve(report: Report) -> Message:
            """In a fork, which leaves no threads here."""
            kernel = build(module, target)
            problem = solved(module, kernel, seed)
            for name, right in problem.reference.items():
                reference[name][...] = right
            samples_s: list[float] = []
            if time_baseline:
                report(limit_s=None)  # for as long as others are being timed
                with MachineLock():
                    report(limit_s=self.limits.reference_s)
                    prefer_this_process()
                    samples_s = kernel.times_s(arguments(problem), self.limits.repeats, self.limits.sample_s)
            about = {"reduction_length": problem.reduction_length, "positive": is_positive(problem.inputs)}
            return {**about, "samples_s": samples_s}

        try:
            found = result_of(solve, self.limits.reference_s)
        except Failed as failure:
            raise MeasureError(f"the unscheduled function: {failure}") from None
        for why in Evidence.of(reference, inputs).unverifiable.values():
            what = "its output" if len(reference) == 1 else "one of its outputs"
            raise MeasureError(f"nothing can be verified on random inputs: of {what}, {why}")
        inputs = positive(inputs) if found["positive"] else inputs
        updated = [name for name in reference if name in inputs]
        self.problem = Problem(inputs, [*reference], reference, found["reduction_length"], updated)
        self.baseline = Outcome("ok", tuple(found["samples_s"]))

    def measure(self, modules: Sequence[Any], best_s: float = float("inf")) -> list[Outcome]:
        """Verify and time scheduled modules. best_s: the best runtime known, for the cutoff."""
        import tvm

        return self.measure_texts([tvm.ir.save_json(module) for module in modules], best_s)

    def measure_texts(self, texts: Sequence[str], best_s: float = float("inf")) -> list[Outcome]:
        """As `measure`, of modules as `tvm.ir.save_json` writes them."""
        outcomes: dict[int, Outcome] = {}
        threads = available_threads()
        alone: set[int] = set()  # were being compiled when the process died: which of them killed it?
        while left := [n for n in range(len(texts)) if n not in outcomes]:
            numbers = [n for n in left if n not in alone][:_TOGETHER] or left[:1]
            batch = Batch(
                [(n, texts[n]) for n in numbers], self.problem, self.target, self.build,
                self.limits, best_s, min(2, threads, len(numbers)), threads,
            )  # fmt: skip
            found, suspects = _follow(batch)
            outcomes.update(found)
            alone |= suspects
            best_s = min([best_s, *(o.runtime_s for o in outcomes.values() if o.runtime_s)])
        return [outcomes[n] for n in range(len(texts))]


def _follow(batch: Batch) -> tuple[dict[int, Outcome], set[int]]:
    """Outcomes of the candidates that were decided, and those that must be tried again alone: a crash or a
    hang of the compiler leaves some undecided."""
    building: dict[int, tuple[float, float]] = {}  # number -> clock and processor time at its begin
    built_s: dict[int, float] = {}
    outcomes: dict[int, Outcome] = {}
    idle = 0.0, 0.0  # clock and processor time when it last began to compile something, or was seen to work

    def decide(n: int, outcome: Outcome) -> None:
        outcomes.setdefault(n, replace(outcome, build_s=built_s.get(n, 0.0)))

    def is_late(began: float, used_s: float) -> bool:
        """On a busy machine, what counts is the share of the processors that the compiler got."""
        spent_s, waited_s = (_cpu_s(child.pid) - used_s) / batch.threads, time.monotonic() - began
        return spent_s >= batch.limits.build_s or waited_s >= _HANGS * batch.limits.build_s

    with Child.forked(batch.work) as child:
        while (messages := child.listen(_LOOK_S if building else None)) is not None:
            for message in messages:
                if "building" in message:
                    building[message["building"]] = idle = time.monotonic(), _cpu_s(child.pid)
                elif "built" in message:
                    del building[message["built"]]
                    built_s[message["built"]] = message["s"]
                else:
                    building.pop(message["ended"], None)
                    decide(message["ended"], Outcome.from_dict(message["outcome"]))
            if late := [] if messages else [n for n, begun in building.items() if is_late(*begun)]:
                for n in late:
                    detail = f"compiling took longer than {batch.limits.build_s:g} s"
                    decide(n, Outcome("timeout", detail=detail))
                building.clear()  # threads cannot be ended: the others of this process are compiled again
                child.end()
                break
            if building and batch.threads > 1:
                now = time.monotonic(), _cpu_s(child.pid)
                if now[1] - idle[1] > 0.05 * batch.limits.build_s:
                    idle = now
                elif now[0] - idle[0] > _STUCK * batch.limits.build_s:
                    return outcomes, set(building)
        failure = child.failure()
    if len(building) == 1:
        decide(min(building), Outcome("build_error", detail=failure.detail))
    suspects = set(building) - set(outcomes)
    if not outcomes and not suspects:  # it did nothing at all: do not try for ever
        for n, _ in batch.jobs:
            decide(n, Outcome(failure.status, detail=failure.detail))
    return outcomes, suspects


def _cpu_s(pid: int) -> float:
    """Processor time that a process of this user has used."""
    return time.clock_gettime(((~pid) << 3) | 2)  # CPUCLOCK_SCHED of a process, see clock_getcpuclockid


def _shared(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array that forks of this process write to."""
    count = math.prod(shape)
    return np.frombuffer(mmap.mmap(-1, max(1, count * dtype.itemsize)), dtype, count).reshape(shape)
