"""Players compiled and verified together, then timed in turn: in a process of their own.

Schedules of a module share TVM's threads and their inputs, so that what is left between them is the schedule.
The process waits for its next turn without using a processor.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.kernel import Build, Kernel, load_called
from gnnperf.backends.tvm.problem import arguments, computed, named_results, renewed, solved, tensors
from gnnperf.devices import MachineLock
from gnnperf.errors import last_line
from gnnperf.frontends.tvm.whole_program import MAIN, Compiled, WholeProgram
from gnnperf.measure.confine import available_threads, limit_memory, prefer_this_process
from gnnperf.measure.interleaved import Turn
from gnnperf.measure.isolation import confine, isolate
from gnnperf.measure.outcome import Outcome, checked
from gnnperf.measure.problem import Problem
from gnnperf.measure.supervisor import Service

Part = tuple[int, Mapping[str, str]]
"""Number of a program, and scheduled modules of its tasks by name, as `tvm.ir.save_json` writes them."""

Players = Iterable[tuple[Outcome, Turn | None]]
"""What came of verifying each, and what times one that is right."""

Prepare = Callable[[], Callable[[], Players]]
"""Compiles the players; what it returns verifies them."""

_COMPILING = 2
"""Threads that compile."""

_PATIENCE_S = 120.0
"""For one turn, for compiling one schedule and for verifying it: they have been run before."""


class Rehearsal(Service):
    """Players in a process of their own, which times one of them per turn.

    Attributes:
        outcomes: of every player, "ok" where it computed what it should.
    """

    def __init__(self, prepare: Prepare, count: int) -> None:
        """prepare: called in the process. Raises MeasureError where that ends."""
        super().__init__(_Stage(prepare))
        try:
            self.ask("prepare", patience_s=count * _PATIENCE_S)
            self.ask("wait")
            self.outcomes: list[Outcome] = self.ask("verify", patience_s=count * _PATIENCE_S)
        except BaseException:
            self.close()
            raise

    def turn(self, player: int) -> float:
        """Seconds of a run. Raises MeasureError."""
        return float(self.ask("turn", player, patience_s=_PATIENCE_S))


class _Stage:
    """What is in the process."""

    def __init__(self, prepare: Prepare) -> None:
        self._prepare = prepare
        self._lock = MachineLock()
        self._turns: list[Turn | None] = []

    def prepare(self) -> None:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # TVM's own handler would print a backtrace
        confine(self._lock.file())
        self._players = self._prepare()

    def wait(self) -> None:
        """For the machine, for as long as others are being timed."""
        self._lock.acquire()

    def verify(self) -> list[Outcome]:
        prefer_this_process()
        outcomes = []
        for outcome, turn in self._players():
            outcomes.append(outcome)
            self._turns.append(turn)
        self._lock.release()
        return outcomes

    def turn(self, player: int) -> float:
        turn = self._turns[player]
        assert turn is not None
        return turn()


def rehearse_schedules(
    module: Any, texts: Sequence[str], target: Any, limits: BenchLimits, build: Build, seed: int
) -> Rehearsal:
    """Player 0 is the unscheduled module, the others are schedules of it. texts: modules as
    `tvm.ir.save_json` writes them. Raises MeasureError."""

    def prepare() -> Callable[[], Players]:
        import tvm

        kernels = _built(lambda text: build(tvm.ir.load_json(text), target), texts)
        limit_memory(limits.memory_bytes, available_threads())
        return lambda: players(kernels)

    def players(kernels: Sequence[Kernel | Outcome]) -> Players:
        unscheduled = build(module, target)
        isolate()
        problem = solved(module, unscheduled, seed)
        given = arguments(problem)
        return (player(kernel, problem, given) for kernel in [unscheduled, *kernels])

    def player(
        kernel: Kernel | Outcome, problem: Problem, given: Sequence[Any]
    ) -> tuple[Outcome, Turn | None]:
        if isinstance(kernel, Outcome):
            return kernel, None
        own = renewed(problem, given)
        outcome = checked(lambda: computed(kernel, own, problem.outputs), problem)
        return outcome, lambda: kernel.times_s(given, 1, limits.sample_s)[0]

    return Rehearsal(prepare, 1 + len(texts))


def rehearse_programs(
    programs: Sequence[WholeProgram], parts: Sequence[Part], problem: Problem, limits: BenchLimits
) -> Rehearsal:
    """A player for each part: a whole program on the inputs of the problem. Raises MeasureError."""

    def build(part: Part) -> Any:
        import tvm

        number, texts = part
        scheduled = {name: tvm.ir.load_json(text) for name, text in texts.items()}
        for module in scheduled.values():
            load_called(module)
        return programs[number].compiled(scheduled)

    def prepare() -> Callable[[], Players]:
        built = _built(build, parts)
        inputs = tensors(problem.inputs.values())
        return lambda: players(built, inputs)

    def players(built: Sequence[Compiled | Outcome], inputs: Sequence[Any]) -> Players:
        isolate()
        return (player(made, inputs) for made in built)

    def player(built: Compiled | Outcome, inputs: Sequence[Any]) -> tuple[Outcome, Turn | None]:
        import tvm

        if isinstance(built, Outcome):
            return built, None
        try:
            machine, weights = built.machine()
        except Exception as error:
            return Outcome("run_error", detail=last_line(error)), None
        given = [*inputs, *weights]
        evaluate = machine.time_evaluator(
            MAIN, tvm.cpu(), number=1, repeat=1, min_repeat_ms=round(1000 * limits.sample_s)
        )
        outcome = checked(lambda: named_results(machine[MAIN](*given)), problem)
        return outcome, lambda: float(evaluate(*given).results[0])

    return Rehearsal(prepare, len(parts))


def _built(build: Callable[[Any], Any], jobs: Sequence[Any]) -> list[Any]:
    """What is built for every job, or an outcome where that fails."""

    def built(job: Any) -> Any:
        try:
            return build(job)
        except Exception as error:
            return Outcome("build_error", detail=last_line(error))

    with ThreadPoolExecutor(_COMPILING) as pool:
        return list(pool.map(built, jobs))
