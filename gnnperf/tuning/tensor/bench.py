"""Measure schedules of one workload in processes of their own: a crash or a hang costs one candidate.

The bench forks a watcher. The watcher forks, per batch, a process that compiles the candidates in two
threads and that forks the processes which run them (`batch.py`); it follows their reports, ends what takes
too long, and starts again with what is left. A fork of a process that has TVM loaded costs milliseconds, a
new process seconds. Code is compiled into memory: there is no linker to wait for.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NoReturn

from gnnperf.devices import MachineLock
from gnnperf.errors import MeasureError
from gnnperf.measure.confine import (
    WATCHER,
    available_threads,
    die_with_parent,
    prefer_others,
    prefer_this_process,
)
from gnnperf.tuning.tensor.batch import Batch, cause, last_line
from gnnperf.tuning.tensor.kernel import Build, build_kernel
from gnnperf.tuning.tensor.outcome import BenchLimits, Outcome
from gnnperf.tuning.tensor.problem import Problem

_LOOK_MS = 200
"""How often the time limits are looked at."""

_HANGS = 5
"""So many times the limit for compiling, in wall time, and it is taken to hang."""

_TOGETHER = 8
"""Candidates compiled by one process: so many are compiled again, at most, when one of them hangs."""


class Bench:
    """Measures schedules of one unscheduled module. Start it before this process uses threads: it forks.

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
        self._client, server = Pipe()
        watcher = _Watcher(server, module, target, limits or BenchLimits(), build, seed, time_baseline)
        parent, self._pid = os.getpid(), os.fork()  # not multiprocessing's: its children may have none
        if self._pid == 0:
            self._client.close()
            watcher.serve(parent)
        server.close()
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

    def close(self) -> None:
        """End the watcher, and with it all that it started."""
        self._client.close()
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
        alone: set[int] = set()  # were being compiled when the process died: which of them killed it?
        while left := [n for n in range(len(texts)) if n not in outcomes]:
            numbers = [n for n in left if n not in alone][:_TOGETHER] or left[:1]
            watch = _Watch(self, [(n, texts[n]) for n in numbers], best_s)
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


class _Watch:
    """Follows one batch process. suspects: candidates that must be tried again alone."""

    def __init__(self, watcher: _Watcher, jobs: Sequence[tuple[int, str]], best_s: float) -> None:
        self.limits = watcher.limits
        self.suspects: set[int] = set()
        self._numbers = [n for n, _ in jobs]
        self._building: dict[int, tuple[float, float]] = {}  # number -> clock and processor time at its begin
        self._built_s: dict[int, float] = {}
        self._running: tuple[int, int, float] | None = None  # number, process, when it began
        self._outcomes: dict[int, Outcome] = {}
        self._reader, writer = os.pipe()
        threads = available_threads()
        self._threads = min(2, threads, len(jobs))
        batch = Batch(
            jobs, watcher.problem, watcher.length, watcher.target, watcher.build, watcher.limits, best_s,
            self._threads, threads, writer,
        )  # fmt: skip
        parent, self._pid = os.getpid(), os.fork()
        if self._pid == 0:
            os.close(self._reader)
            watcher.client.close()
            batch.work(parent)
        os.close(writer)
        with suppress(ProcessLookupError, PermissionError):
            os.setpgid(self._pid, self._pid)  # here and in the child: whichever runs first

    def follow(self) -> Mapping[int, Outcome]:
        """Outcomes of the candidates that were decided; a crash or a hang leaves some undecided."""
        ended = 0
        try:
            self._read()
        finally:
            prefer_others()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            _, ended = os.waitpid(self._pid, 0)
            os.close(self._reader)
        if len(self._building) == 1:
            (number,) = self._building
            self._decide(number, Outcome("build_error", detail=cause(ended)))
        self.suspects |= set(self._building) - set(self._outcomes)
        if not self._outcomes and not self.suspects:  # it did nothing at all: do not try for ever
            for number in self._numbers:
                self._decide(number, Outcome("run_error", detail=cause(ended)))
        return self._outcomes

    def _read(self) -> None:
        poller = select.poll()
        poller.register(self._reader, select.POLLIN)
        pending = b""
        while True:
            busy = bool(self._building) or self._running is not None
            if not poller.poll(_LOOK_MS if busy else None):  # waiting for the machine is free
                if not self._overdue():
                    return
                continue
            data = os.read(self._reader, 1 << 16)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self._hear(json.loads(line))

    def _overdue(self) -> bool:
        """End what takes too long; False where that ends the whole process."""
        now = time.monotonic()
        if self._running is not None and now >= self._running[2] + self.limits.run_s:
            number, pid, _ = self._running
            self._decide(
                number, Outcome("timeout", detail=f"running took longer than {self.limits.run_s:g} s")
            )
            self._running = None
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        late = [n for n, begun in self._building.items() if self._is_late(*begun)]
        for number in late:
            detail = f"compiling took longer than {self.limits.build_s:g} s"
            self._decide(number, Outcome("timeout", detail=detail))
        if late:  # threads cannot be ended: the others of this process are compiled again
            self._building.clear()
        return not late

    def _is_late(self, began: float, used_s: float) -> bool:
        """On a busy machine, what counts is the share of the processors that the compiler got."""
        spent_s = (_cpu_s(self._pid) - used_s) / self._threads
        waited_s = time.monotonic() - began
        return spent_s >= self.limits.build_s or waited_s >= _HANGS * self.limits.build_s

    def _hear(self, message: Mapping[str, Any]) -> None:
        number = message.get("n", -1)
        if message["event"] == "building":
            self._building[number] = time.monotonic(), _cpu_s(self._pid)
        elif message["event"] == "built":
            self._building.pop(number, None)
            self._built_s[number] = message["s"]
        elif message["event"] == "running":
            self._running = number, message["pid"], time.monotonic()
            prefer_this_process(WATCHER)  # it can always end what it watches
        elif message["event"] == "ended":
            self._building.pop(number, None)
            self._running = None
            self._decide(number, Outcome.from_dict(message["outcome"]))

    def _decide(self, number: int, outcome: Outcome) -> None:
        build_s = self._built_s.get(number, 0.0)
        self._outcomes.setdefault(number, replace(outcome, build_s=build_s))


def _cpu_s(pid: int) -> float:
    """Processor time that a process of this user has used."""
    return time.clock_gettime(((~pid) << 3) | 2)  # CPUCLOCK_SCHED of a process, see clock_getcpuclockid
