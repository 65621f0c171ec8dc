"""The process that compiles a batch of schedules in memory, and that forks those which run them."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from gnnperf.backends.tvm.kernel import Build, Kernel
from gnnperf.backends.tvm.problem import arguments, computed, renewed
from gnnperf.devices import MachineLock
from gnnperf.errors import last_line
from gnnperf.measure.confine import limit_files, limit_memory, prefer_this_process
from gnnperf.measure.isolation import confine, isolate
from gnnperf.measure.outcome import Outcome, Sampling, timed
from gnnperf.measure.problem import Problem
from gnnperf.measure.supervisor import Child, Report, in_succession


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchLimits(Sampling):
    """build_s: processor time for compiling one schedule, of a thread of its own. reference_s: wall time for
    the unscheduled function, compiled and run. memory_bytes: what a schedule may allocate."""

    build_s: float = 4.0
    run_s: float = 5.0
    reference_s: float = 30.0
    repeats: int = 3
    sample_s: float = 0.01
    cutoff: float = 3.0
    hopeless_s: float = 2e-4
    memory_bytes: int = 4 << 30


@dataclass
class Batch:
    """Candidates as (number, IRModule in JSON). best_s: the runtime that makes others hopeless. threads: that
    compile."""

    jobs: Sequence[tuple[int, str]]
    problem: Problem
    target: Any
    build: Build
    limits: BenchLimits
    best_s: float
    threads: int
    kernel_threads: int

    def work(self, report: Report) -> None:
        """Compile, then run what was compiled. Reports `building` and `built` with a candidate's number, and
        `ended` with its outcome."""
        limit_files(1 << 16)
        lock = MachineLock()
        confine(lock.file())
        with ThreadPoolExecutor(self.threads) as pool:
            built = pool.map(lambda job: self._compile(job[0], job[1], report), self.jobs)
            kernels = {n: kernel for n, kernel in built if kernel is not None}
        with lock:
            for n, outcome in in_succession([*kernels], lambda left: self._runner(kernels, left), None):
                report(ended=n, outcome=outcome)
                self.best_s = min([self.best_s, *outcome.get("samples_s", ())])

    def _compile(self, n: int, text: str, report: Report) -> tuple[int, Kernel | None]:
        import tvm

        started = time.perf_counter()
        report(building=n)
        try:
            kernel = self.build(tvm.ir.load_json(text), self.target)
        except Exception as error:
            report(ended=n, outcome=Outcome("build_error", detail=last_line(error)).to_dict())
            return n, None
        report(built=n, s=time.perf_counter() - started)
        return n, kernel

    def _runner(self, kernels: Mapping[int, Kernel], numbers: Sequence[int]) -> Child:
        child = Child.forked(lambda report: self._run(kernels, numbers, report))
        child.outrank()
        return child

    def _run(self, kernels: Mapping[int, Kernel], numbers: Sequence[int], report: Report) -> None:
        """Run candidates until one of them fails: what it did to memory must not be blamed on the next."""
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # TVM's own handler would print a backtrace
        limit_memory(self.limits.memory_bytes, self.kernel_threads)
        prefer_this_process()
        isolate()
        given = arguments(self.problem)
        for n in numbers:
            report(begin=n, limit_s=self.limits.run_s)
            outcome = self._timed(kernels[n], renewed(self.problem, given))
            report(end=n, outcome=outcome.to_dict())
            if outcome.status != "ok":
                return
            self.best_s = min(self.best_s, *outcome.samples_s)

    def _timed(self, kernel: Kernel, tensors: Sequence[Any]) -> Outcome:
        return timed(
            lambda: computed(kernel, tensors, self.problem.outputs),
            lambda repeats, sample_s: kernel.times_s(tensors, repeats, sample_s),
            self.problem,
            self.limits,
            self.best_s,
        )
