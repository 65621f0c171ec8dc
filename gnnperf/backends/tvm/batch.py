"""The process that compiles a batch of candidates, and the processes it forks to run them.

Both report to the watcher in lines of JSON, short enough that a pipe takes each whole.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import mmap
import os
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn

from gnnperf.backends.tvm.kernel import Build, Kernel
from gnnperf.backends.tvm.outcome import BenchLimits, Outcome
from gnnperf.backends.tvm.problem import Problem
from gnnperf.devices import MachineLock
from gnnperf.measure.confine import die_with_parent, limit_files, limit_memory, prefer_this_process

_STARTED, _ENDED = 1, 2


@dataclass
class Batch:
    """Candidates as (number, IRModule in JSON). best_s: the runtime that makes others hopeless. threads: that
    compile. pipe: file descriptor that takes the reports. Runs in a fork of its own (`work`)."""

    jobs: Sequence[tuple[int, str]]
    problem: Problem
    length: int
    target: Any
    build: Build
    limits: BenchLimits
    best_s: float
    threads: int
    kernel_threads: int
    pipe: int = -1

    def work(self, parent: int) -> NoReturn:
        """Compile, then run what was compiled; ends the process."""
        try:
            os.setpgid(0, 0)
            die_with_parent(parent)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            faulthandler.disable()
            silence()
            with ThreadPoolExecutor(self.threads) as pool:
                kernels = {
                    n: kernel for n, kernel in pool.map(self._compile, self.jobs) if kernel is not None
                }
            self._run_all(kernels)
        finally:
            os._exit(0)

    def _compile(self, job: tuple[int, str]) -> tuple[int, Kernel | None]:
        import tvm

        number, text = job
        started = time.perf_counter()
        self._report(event="building", n=number)
        try:
            kernel = self.build(tvm.ir.load_json(text), self.target)
        except Exception as error:
            self._report(
                event="ended", n=number, outcome=Outcome("build_error", detail=last_line(error)).to_dict()
            )
            return number, None
        self._report(event="built", n=number, s=time.perf_counter() - started)
        return number, kernel

    def _run_all(self, kernels: Mapping[int, Kernel]) -> None:
        """Run the candidates in forks, each until one of its candidates fails or kills it."""
        marks = mmap.mmap(-1, 1 + max(kernels, default=0))  # shared: what a fork had begun when it died
        while left := [n for n in kernels if marks[n] == 0]:
            self._report(event="waiting")
            with MachineLock():
                parent, pid = os.getpid(), os.fork()
                if pid == 0:
                    self._runner(kernels, left, marks, parent)
                _, ended = os.waitpid(pid, 0)
            for n in left:
                if marks[n] == _STARTED:
                    marks[n] = _ENDED
                    outcome = Outcome("run_error", detail=cause(ended))
                    self._report(event="ended", n=n, outcome=outcome.to_dict())
            if all(marks[n] == 0 for n in left):  # it died before it began: not for what it ran
                return

    def _runner(
        self, kernels: Mapping[int, Kernel], numbers: Sequence[int], marks: mmap.mmap, parent: int
    ) -> NoReturn:
        try:
            die_with_parent(parent)
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # TVM's own handler would print a backtrace
            limit_files(0)
            limit_memory(self.limits.memory_bytes, self.kernel_threads)
            prefer_this_process()
            arguments = self.problem.arguments()
            for n in numbers:
                marks[n] = _STARTED
                self._report(event="running", n=n, pid=os.getpid())
                outcome = self._measure(kernels[n], arguments)
                self._report(event="ended", n=n, outcome=outcome.to_dict())
                marks[n] = _ENDED
                if outcome.status != "ok":  # what it did to memory must not be blamed on the next
                    break
        finally:
            os._exit(0)

    def _measure(self, kernel: Kernel, arguments: list[Any]) -> Outcome:
        arguments = [*arguments[:-1], self.problem.output()]
        try:
            kernel.run(arguments)
            if fault := self.problem.fault(arguments[-1].numpy(), self.length):
                return Outcome("wrong_result", detail=fault[:300])
            started = time.perf_counter()
            kernel.run(arguments)
            once_s = time.perf_counter() - started
            if once_s > max(self.limits.cutoff * self.best_s, 2e-4):
                return Outcome("ok", (once_s,), once=True)
            samples = kernel.times_s(arguments, self.limits.repeats, self.limits.sample_s)
        except Exception as error:
            return Outcome("run_error", detail=last_line(error))
        self.best_s = min(self.best_s, *samples)
        return Outcome("ok", tuple(samples))

    def _report(self, **message: Any) -> None:
        os.write(self.pipe, json.dumps(message).encode() + b"\n")


def silence() -> None:
    """What candidates print, and what LLVM says before it aborts, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


def last_line(error: BaseException) -> str:
    """The end of an error's message, where TVM puts what went wrong."""
    return f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"[:300]


def cause(ended: int) -> str:
    """Why a process died, from what `waitpid` gave."""
    if os.WIFSIGNALED(ended):
        number = os.WTERMSIG(ended)
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(number).name}"
        return f"killed by signal {number}"
    return f"ended early with exit code {os.waitstatus_to_exitcode(ended)}"
