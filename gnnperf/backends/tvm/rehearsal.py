"""Players compiled and verified together, then timed in turn: in a process of their own.

Schedules of a module share TVM's threads and their inputs, so that what is left between them is the schedule.
The process waits for its next turn without using a processor.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.kernel import Build, Kernel
from gnnperf.backends.tvm.problem import OUTPUT, arguments, computed, poisoned, random_inputs, solved, tensors
from gnnperf.devices import MachineLock
from gnnperf.errors import MeasureError, last_line
from gnnperf.frontends.tvm.whole_program import MAIN, WholeProgram
from gnnperf.measure.confine import available_threads, limit_memory, prefer_this_process
from gnnperf.measure.interleaved import Turn
from gnnperf.measure.outcome import Outcome, checked
from gnnperf.measure.problem import Arrays, Problem
from gnnperf.measure.protocol import receive_object, send_object
from gnnperf.measure.supervisor import Child

Part = tuple[int, Mapping[str, str]]
"""Number of a program, and scheduled modules of its tasks by name, as `tvm.ir.save_json` writes them."""

Players = Iterable[tuple[Outcome, Turn | None]]
"""What came of verifying each, and what times one that is right."""

_COMPILING = 2
"""Threads that compile."""

_PATIENCE_S = 120.0
"""For one turn, and for compiling and verifying one schedule: they have been run before."""


class Rehearsal:
    """Players in a process of their own, which times one of them per turn.

    Attributes:
        outcomes: of every player, "ok" where it computed what it should.
    """

    def __init__(self, players: Callable[[], Players], count: int) -> None:
        """players: called in the process. Raises MeasureError where that ends."""
        self._child = Child.fork(lambda channel: _play(players, channel))
        try:
            self.outcomes: list[Outcome] = [self._receive() for _ in range(count)]
        except BaseException:
            self.close()
            raise

    def turn(self, player: int) -> float:
        """Seconds of a run. Raises MeasureError."""
        return float(self._receive(player))

    def close(self) -> None:
        self._child.end()

    def _receive(self, player: int | None = None) -> Any:
        channel = self._child.channel
        channel.settimeout(_PATIENCE_S)
        try:
            if player is not None:
                send_object(channel, player)
            return receive_object(channel)
        except TimeoutError:
            raise MeasureError(f"what was measured before took longer than {_PATIENCE_S:g} s") from None
        except (EOFError, OSError):
            raise MeasureError(f"what was measured before {self._child.failure()}") from None


def _play(players: Callable[[], Players], channel: socket.socket) -> None:
    """In the process: verify, then take turns until nobody asks for more."""
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # TVM's own handler would print a backtrace
    turns = []
    for outcome, turn in players():
        send_object(channel, outcome)
        turns.append(turn)
    while True:
        turn = turns[receive_object(channel)]
        assert turn is not None
        send_object(channel, turn())


def rehearse_schedules(
    module: Any, texts: Sequence[str], target: Any, limits: BenchLimits, build: Build, seed: int
) -> Rehearsal:
    """Player 0 is the unscheduled module, the others are schedules of it. texts: modules as
    `tvm.ir.save_json` writes them. Raises MeasureError."""

    def players() -> Players:
        import tvm

        kernels = _built(lambda text: build(tvm.ir.load_json(text), target), texts)
        limit_memory(limits.memory_bytes, available_threads())
        with MachineLock():
            prefer_this_process()
            unscheduled = build(module, target)
            problem = solved(module, unscheduled, random_inputs(module, seed))
            given = arguments(problem)
            yield from (player(kernel, problem, given) for kernel in [unscheduled, *kernels])

    def player(
        kernel: Kernel | Outcome, problem: Problem, given: Sequence[Any]
    ) -> tuple[Outcome, Turn | None]:
        if isinstance(kernel, Outcome):
            return kernel, None
        own = [*given[:-1], poisoned(problem.reference[OUTPUT])]
        outcome = checked(lambda: computed(kernel, own), problem)
        return outcome, lambda: kernel.times_s(given, 1, limits.sample_s)[0]

    return Rehearsal(players, 1 + len(texts))


def rehearse_programs(
    programs: Sequence[WholeProgram], parts: Sequence[Part], problem: Problem, limits: BenchLimits
) -> Rehearsal:
    """A player for each part: a whole program on the inputs of the problem. Raises MeasureError."""

    def build(part: Part) -> Any:
        import tvm

        number, texts = part
        return programs[number].compiled({name: tvm.ir.load_json(text) for name, text in texts.items()})

    def players() -> Players:
        built = _built(build, parts)
        inputs = tensors(problem.inputs.values())
        with MachineLock():
            prefer_this_process()
            yield from (player(programs[n], made, inputs) for (n, _), made in zip(parts, built, strict=True))

    def player(program: WholeProgram, built: Any, inputs: Sequence[Any]) -> tuple[Outcome, Turn | None]:
        import tvm

        if isinstance(built, Outcome):
            return built, None
        try:
            machine, weights = program.machine(built)
        except Exception as error:
            return Outcome("run_error", detail=last_line(error)), None
        given = [*inputs, *weights]
        evaluate = machine.time_evaluator(
            MAIN, tvm.cpu(), number=1, repeat=1, min_repeat_ms=round(1000 * limits.sample_s)
        )
        outcome = checked(lambda: _results(machine[MAIN](*given)), problem)
        return outcome, lambda: float(evaluate(*given).results[0])

    return Rehearsal(players, len(parts))


def _results(found: Any) -> Arrays:
    results = [found] if hasattr(found, "numpy") else list(found)
    return {f"result {n}": result.numpy() for n, result in enumerate(results)}


def _built(build: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
    """What is built for every job, or an outcome where that fails."""

    def built(job: Any) -> Any:
        try:
            return build(job)
        except Exception as error:
            return Outcome("build_error", detail=last_line(error))

    with ThreadPoolExecutor(_COMPILING) as pool:
        return list(pool.map(built, jobs))
