"""Schedules of one module compiled and verified together, then timed in turn: a process of their own.

They share TVM's threads and their inputs, so that what is left between them is the schedule. The process
waits for its next turn without using a processor.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from gnnperf.backends.tvm.batch import last_line, silence
from gnnperf.backends.tvm.forked import Forked
from gnnperf.backends.tvm.kernel import Build, Kernel
from gnnperf.backends.tvm.outcome import BenchLimits, Outcome
from gnnperf.backends.tvm.problem import Problem
from gnnperf.devices import MachineLock
from gnnperf.errors import MeasureError
from gnnperf.measure import Measurement
from gnnperf.measure.confine import available_threads, die_with_parent, limit_memory, prefer_this_process
from gnnperf.measure.statistics import relative_half_width

_COMPILING = 2
"""Threads that compile."""

_PATIENCE_S = 120.0
"""For one turn, and for compiling and verifying one schedule: they have been run before."""


@dataclass(frozen=True)
class Pace:
    """How long players are timed. rounds: of turns, at least. budget_s: wall time, after which no round
    begins that need not; three must do where a round takes seconds. target: relative half-width of the
    interval of every median at which timing stops."""

    rounds: int = 6
    budget_s: float = 2.0
    target: float = 0.01


def in_turns(players: Mapping[str, Callable[[], float]], pace: Pace) -> dict[str, Measurement]:
    """Time players interleaved, in an order that is turned round in every round. Takes the machine's lock.

    players: each gives the seconds of a run of its own, whenever it is called.
    """
    samples: dict[str, list[float]] = {name: [] for name in players}
    with MachineLock():
        started, rounds = time.monotonic(), 0
        while players:
            for name in list(players)[:: 1 if rounds % 2 == 0 else -1]:
                samples[name].append(players[name]())
            rounds += 1
            spent_s = time.monotonic() - started
            if rounds < (pace.rounds if spent_s < 5 * pace.budget_s else 3):
                continue
            known = all(relative_half_width(found) <= pace.target for found in samples.values())
            if known or spent_s > pace.budget_s:
                break
    return {name: Measurement.from_samples(found) for name, found in samples.items()}


class Turns(Forked):
    """Players in a process of their own, which times one of them per turn.

    Attributes:
        outcomes: of every player, "ok" where it computed what it should.
    """

    def __init__(self, play: Callable[[Connection], None], players: int) -> None:
        """play: what the process does with its end of the pipe; sends an outcome for each player, then
        answers numbers of players with seconds. Raises MeasureError where the process ends."""
        super().__init__(partial(_serve, play))
        try:
            self.outcomes: list[Outcome] = [self._receive() for _ in range(players)]
        except BaseException:
            self.close()
            raise

    @classmethod
    def of_schedules(
        cls, module: Any, texts: Sequence[str], target: Any, limits: BenchLimits, build: Build, seed: int
    ) -> Turns:
        """Player 0 is the unscheduled module, the others are schedules of it. texts: modules as
        `tvm.ir.save_json` writes them. Raises MeasureError."""
        about = (module, texts, target, build, seed)
        return cls(lambda client: _Players(client, limits).play(*about), 1 + len(texts))

    def turn(self, player: int) -> float:
        """Seconds of a run. Raises MeasureError."""
        self._client.send(player)
        return float(self._receive())

    def _receive(self) -> Any:
        if not select.select([self._client], [], [], _PATIENCE_S)[0]:
            raise MeasureError(f"a schedule that was measured before took longer than {_PATIENCE_S:g} s")
        try:
            answer = self._client.recv()
        except (EOFError, OSError):
            raise MeasureError("a schedule that was measured before killed its process") from None
        if isinstance(answer, MeasureError):
            raise answer
        return answer


def _serve(play: Callable[[Connection], None], client: Connection, parent: int) -> NoReturn:
    """The other side: play until the first is gone, then end the process."""
    try:
        die_with_parent(parent)
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        silence()
        play(client)
    except (EOFError, OSError):
        pass
    except Exception as error:
        with suppress(OSError):
            client.send(MeasureError(last_line(error)))
    finally:
        os._exit(0)


def compiled(build: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
    """What is built for every job, or an outcome where that fails."""

    def built(job: Any) -> Any:
        try:
            return build(job)
        except Exception as error:
            return Outcome("build_error", detail=last_line(error))

    with ThreadPoolExecutor(_COMPILING) as pool:
        return list(pool.map(built, jobs))


class _Players:
    """Schedules of a module."""

    def __init__(self, client: Connection, limits: BenchLimits) -> None:
        self.client, self.limits = client, limits

    def play(self, module: Any, texts: Sequence[str], target: Any, build: Build, seed: int) -> None:
        import tvm

        problem = Problem.random(module, seed)
        kernels = compiled(lambda text: build(tvm.ir.load_json(text), target), texts)
        limit_memory(self.limits.memory_bytes, available_threads())
        with MachineLock():
            prefer_this_process()
            kernels.insert(0, problem.solve(module, target, build))
            length = problem.tolerated_length()
            arguments = problem.arguments()
            for kernel in kernels:
                self.client.send(self._verified(kernel, problem, arguments, length))
        while True:
            kernel = kernels[self.client.recv()]
            self.client.send(kernel.times_s(arguments, 1, self.limits.sample_s)[0])

    def _verified(
        self, kernel: Kernel | Outcome, problem: Problem, arguments: list[Any], length: int
    ) -> Outcome:
        if isinstance(kernel, Outcome):
            return kernel
        arguments = [*arguments[:-1], problem.output()]
        try:
            kernel.run(arguments)
        except Exception as error:
            return Outcome("run_error", detail=last_line(error))
        fault = problem.fault(arguments[-1].numpy(), length)
        return Outcome("wrong_result", detail=fault[:300]) if fault else Outcome("ok")
