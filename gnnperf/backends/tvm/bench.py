"""Measure schedules of one workload in processes of their own: a crash or a hang costs one candidate.

The bench forks a watcher. The watcher forks, per batch, a process that compiles the candidates in two
threads and that forks the processes which run them (`batch.py`); it follows their reports, ends what takes
too long (`watch.py`), and starts again with what is left. A fork of a process that has TVM loaded costs
milliseconds, a new process seconds. Code is compiled into memory: there is no linker to wait for.
"""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from gnnperf.backends.tvm.batch import Batch, cause, last_line
from gnnperf.backends.tvm.forked import Forked
from gnnperf.backends.tvm.kernel import Build, build_kernel
from gnnperf.backends.tvm.outcome import BenchLimits, Outcome
from gnnperf.backends.tvm.problem import Problem
from gnnperf.backends.tvm.supervisor import Watch
from gnnperf.devices import MachineLock
from gnnperf.errors import MeasureError
from gnnperf.measure.confine import available_threads, die_with_parent, prefer_this_process

_TOGETHER = 8
"""Candidates compiled by one process: so many are compiled again, at most, when one of them hangs."""


class Bench(Forked):
    """Measures schedules of one unscheduled module.

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
        about = (module, target, limits or BenchLimits(), build, seed, time_baseline)
        super().__init__(lambda client, parent: _Watcher(client, *about).serve(parent))
        try:
            self.baseline: Outcome = self._answer()
            if self.baseline.status != "ok":
                raise MeasureError(f"the unscheduled function: {self.baseline.detail}")
        except BaseException:
            self.close()
            raise

    def measure(self, modules: Sequence[Any], best_s: float = float("inf")) -> list[Outcome]:
        """Verify and time scheduled modules. best_s: the best runtime known, for the cutoff."""
        import tvm

        return self.measure_texts([tvm.ir.save_json(module) for module in modules], best_s)

    def measure_texts(self, texts: Sequence[str], best_s: float = float("inf")) -> list[Outcome]:
        """The same, of modules as `tvm.ir.save_json` writes them."""
        self._client.send((texts, best_s))
        found: list[Outcome] = self._answer()
        return found

    def _answer(self) -> Any:
        try:
            answer = self._client.recv()
        except EOFError:
            raise MeasureError("the measuring process ended unexpectedly") from None
        if isinstance(answer, MeasureError):
            raise answer
        return answer


@dataclass
class _Watcher:
    client: Connection
    module: Any
    target: Any
    limits: BenchLimits
    build: Build
    seed: int
    time_baseline: bool

    def serve(self, parent: int) -> NoReturn:
        """Answer until the bench is gone, then end the process."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            die_with_parent(parent)
            self.problem = Problem.random(self.module, self.seed)
            self.client.send(self._baseline())
            self.length = self.problem.tolerated_length()
            while True:
                texts, best_s = self.client.recv()
                self.client.send(self._measure(texts, best_s))
        except EOFError:
            pass
        except Exception as error:
            with suppress(OSError):
                self.client.send(MeasureError(last_line(error)))
        finally:
            os._exit(0)

    def _baseline(self) -> Outcome:
        """Fill the problem's reference, and time the function that does it."""
        reader, writer = os.pipe()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            os.close(reader)
            _reference(self, writer, parent)
        os.close(writer)
        ready = select.select([reader], [], [], self.limits.reference_s)[0]
        data = b""
        while ready and (piece := os.read(reader, 1 << 16)):
            data += piece
        os.close(reader)
        if not ready:
            os.kill(pid, signal.SIGKILL)
        _, ended = os.waitpid(pid, 0)
        if not ready:
            return Outcome("timeout", detail=f"took longer than {self.limits.reference_s:g} s")
        return Outcome.from_dict(json.loads(data)) if data else Outcome("run_error", detail=cause(ended))

    def _measure(self, texts: Sequence[str], best_s: float) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        threads = available_threads()
        alone: set[int] = set()  # were being compiled when the process died: which of them killed it?
        while left := [n for n in range(len(texts)) if n not in outcomes]:
            numbers = [n for n in left if n not in alone][:_TOGETHER] or left[:1]
            batch = Batch(
                [(n, texts[n]) for n in numbers], self.problem, self.length, self.target, self.build,
                self.limits, best_s, min(2, threads, len(numbers)), threads,
            )  # fmt: skip
            watch = Watch(batch, self.client)
            outcomes.update(watch.follow())
            alone.update(watch.suspects)
            best_s = min([best_s, *(o.runtime_s for o in outcomes.values() if o.runtime_s)])
        return [outcomes[n] for n in range(len(texts))]


def _reference(watcher: _Watcher, pipe: int, parent: int) -> None:
    """In a fork: the reference outputs, and the times of the unscheduled function."""
    try:
        die_with_parent(parent)
        problem, limits = watcher.problem, watcher.limits
        try:
            kernel = problem.solve(watcher.module, watcher.target, watcher.build)
            outcome = Outcome("ok")
            if watcher.time_baseline:
                with MachineLock():
                    prefer_this_process()
                    samples = kernel.times_s(problem.arguments(), limits.repeats, limits.sample_s)
                outcome = Outcome("ok", tuple(samples))
        except Exception as error:
            outcome = Outcome("build_error", detail=last_line(error))
        os.write(pipe, json.dumps(outcome.to_dict()).encode())
    finally:
        os._exit(0)
