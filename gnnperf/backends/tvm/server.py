"""Benches behind a process that was forked early: what forks must hold neither torch nor an open store.

The process that retrieves loads both. Before it does, it forks the server, which has TVM and the modules and
nothing else, and which opens a `TraceBench` per module when asked. What it is asked to do in advance, it does
while the other loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from gnnperf.backends.tvm.batch import BenchLimits
from gnnperf.backends.tvm.bench import TraceBench
from gnnperf.backends.tvm.kernel import Build, build_kernel
from gnnperf.backends.tvm.rehearsal import Part, Rehearsal, rehearse_programs, rehearse_schedules
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm.whole_program import WholeProgram
from gnnperf.measure.interleaved import Turn
from gnnperf.measure.outcome import Outcome
from gnnperf.measure.problem import Problem
from gnnperf.measure.supervisor import Service


class Rehearsed(NamedTuple):
    """outcomes: of every player. turns: of those that computed what they should, by their number; each gives
    the seconds of a run and raises MeasureError."""

    outcomes: list[Outcome]
    turns: dict[int, Turn]


class BenchServer(Service):
    """Measures schedules of several unscheduled modules, one at a time. Every method raises MeasureError
    where measuring itself fails."""

    def __init__(
        self,
        modules: Sequence[Any],
        target: Any,
        limits: BenchLimits | None = None,
        build: Build = build_kernel,
        seed: int = 0,
        programs: Sequence[WholeProgram] = (),
    ) -> None:
        """programs: that some of the modules are tasks of, see `rehearsed_whole`."""
        benches = _Benches(modules, target, limits or BenchLimits(), build, seed, programs)
        super().__init__(benches, afresh=True)
        self._baselines: dict[int, Callable[[], Outcome]] = {}

    def prepare(self, number: int) -> None:
        """Begin to run a module's unscheduled function, and do not wait for it."""
        if number not in self._baselines:
            self._baselines[number] = self.begin("open", number)

    def baseline(self, number: int) -> Outcome:
        """The unscheduled function of a module: what TVM's default pipeline runs on a CPU."""
        self.prepare(number)
        return self._baselines[number]()

    def measure(self, number: int, modules: Sequence[Any], best_s: float = float("inf")) -> list[Outcome]:
        """As `TraceBench.measure`, of schedules of module `number`."""
        return list(self.ask("measure", number, _texts(modules), best_s))

    @contextmanager
    def rehearsed(self, number: int, modules: Sequence[Any]) -> Iterator[Rehearsed]:
        """Compile the unscheduled function of a module and schedules of it, and verify them on other inputs
        than `measure` does, in one process, which times one of them per turn until the context closes. Player
        0 is the unscheduled function."""
        with self._turns(self.ask("rehearse", number, _texts(modules))) as found:
            yield found

    @contextmanager
    def rehearsed_whole(
        self, players: Sequence[tuple[int, Mapping[str, Any]]], problem: Problem
    ) -> Iterator[Rehearsed]:
        """Compile and verify whole programs in one process, which times one of them per turn until the
        context closes.

        players: numbers of programs, each with scheduled modules of some of its tasks, by the task's name.
        """
        parts = [(number, dict(zip(given, _texts(given.values()), strict=True))) for number, given in players]
        with self._turns(self.ask("rehearse_whole", parts, problem)) as found:
            yield found

    @contextmanager
    def _turns(self, outcomes: Sequence[Outcome]) -> Iterator[Rehearsed]:
        right = [player for player, outcome in enumerate(outcomes) if outcome.status == "ok"]
        try:
            yield Rehearsed([*outcomes], {player: partial(self.ask, "turn", player) for player in right})
        finally:
            with suppress(MeasureError):  # where the process is gone, so are its players
                self.ask("end")


class _Benches:
    """What the server does: one bench open at a time."""

    def __init__(
        self, modules: Sequence[Any], target: Any, limits: BenchLimits, build: Build, seed: int,
        programs: Sequence[WholeProgram],
    ) -> None:  # fmt: skip
        self.modules, self.programs, self.target = modules, programs, target
        self.limits, self.build, self.seed = limits, build, seed
        self._opened: tuple[int, TraceBench] | None = None
        self._rehearsal: Rehearsal | None = None

    def open(self, number: int) -> Outcome:
        return self._bench(number).baseline

    def measure(self, number: int, texts: Sequence[str], best_s: float) -> list[Outcome]:
        return self._bench(number).measure_texts(texts, best_s)

    def _bench(self, number: int) -> TraceBench:
        if self._opened is None or self._opened[0] != number:
            bench = TraceBench(self.modules[number], self.target, self.limits, self.build, self.seed)
            self._opened = number, bench
        return self._opened[1]

    def rehearse(self, number: int, texts: Sequence[str]) -> list[Outcome]:
        self.end()
        self._rehearsal = rehearse_schedules(
            self.modules[number], texts, self.target, self.limits, self.build, self.seed + 1
        )
        return self._rehearsal.outcomes

    def rehearse_whole(self, parts: Sequence[Part], problem: Problem) -> list[Outcome]:
        self.end()
        self._rehearsal = rehearse_programs(self.programs, parts, problem, self.limits)
        return self._rehearsal.outcomes

    def turn(self, player: int) -> float:
        if self._rehearsal is None:
            raise MeasureError("nothing was rehearsed")
        return self._rehearsal.turn(player)

    def end(self) -> None:
        if self._rehearsal is not None:
            self._rehearsal.close()
            self._rehearsal = None


def _texts(modules: Iterable[Any]) -> list[str]:
    import tvm

    return [tvm.ir.save_json(module) for module in modules]
