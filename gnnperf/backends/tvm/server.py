"""Benches behind a process that was forked early: what forks must hold neither torch nor an open store.

The process that retrieves loads both. Before it does, it forks the server, which has TVM and the modules and
nothing else, and which opens a `Bench` per module when asked. What it is asked to do in advance, it does
while the other loads.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn

from gnnperf.backends.tvm.batch import last_line
from gnnperf.backends.tvm.bench import Bench
from gnnperf.backends.tvm.forked import Forked
from gnnperf.backends.tvm.interleaved import Turns
from gnnperf.backends.tvm.kernel import Build, build_kernel
from gnnperf.backends.tvm.outcome import BenchLimits, Outcome
from gnnperf.backends.tvm.whole import Case, Part, whole_turns
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm.whole_program import WholeProgram
from gnnperf.measure.confine import die_with_parent


class Rehearsed(NamedTuple):
    """outcomes: of every player. turns: of those that computed what they should, by their number; each gives
    the seconds of a run and raises MeasureError."""

    outcomes: list[Outcome]
    turns: dict[int, Callable[[], float]]


class BenchServer(Forked):
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
        about = (modules, target, limits or BenchLimits(), build, seed, programs)
        super().__init__(lambda client, parent: _Server(client, *about).serve(parent))
        self._asked: deque[int] = deque()  # modules whose baseline was asked for and not answered yet
        self._baselines: dict[int, Outcome | MeasureError] = {}

    def prepare(self, number: int) -> None:
        """Begin to run a module's unscheduled function, and do not wait for it."""
        if number not in self._baselines and number not in self._asked:
            self._send("open", number)
            self._asked.append(number)

    def baseline(self, number: int) -> Outcome:
        """The unscheduled function of a module: what TVM's default pipeline runs on a CPU."""
        self.prepare(number)
        self._hear()
        found = self._baselines[number]
        if isinstance(found, MeasureError):
            raise found
        return found

    def measure(self, number: int, modules: Sequence[Any], best_s: float = float("inf")) -> list[Outcome]:
        """As `Bench.measure`, of schedules of module `number`."""
        return list(self._ask("measure", number, _texts(modules), best_s))

    @contextmanager
    def rehearsed(self, number: int, modules: Sequence[Any]) -> Iterator[Rehearsed]:
        """Compile and verify the unscheduled function of a module and schedules of it, in one process, which
        times one of them per turn until the context closes. Player 0 is the unscheduled function."""
        with self._turns(self._ask("rehearse", number, _texts(modules))) as found:
            yield found

    @contextmanager
    def rehearsed_whole(
        self, players: Sequence[tuple[int, Mapping[str, Any]]], case: Case
    ) -> Iterator[Rehearsed]:
        """Compile and verify whole programs in one process, which times one of them per turn until the
        context closes.

        players: numbers of programs, each with scheduled modules of some of its tasks, by the task's name.
        """
        parts = [(number, dict(zip(given, _texts(given.values()), strict=True))) for number, given in players]
        with self._turns(self._ask("rehearse_whole", parts, case)) as found:
            yield found

    @contextmanager
    def _turns(self, outcomes: Sequence[Outcome]) -> Iterator[Rehearsed]:
        right = [player for player, outcome in enumerate(outcomes) if outcome.status == "ok"]
        try:
            yield Rehearsed([*outcomes], {player: partial(self._ask, "turn", player) for player in right})
        finally:
            with suppress(MeasureError):  # where the process is gone, so are its players
                self._ask("end")

    def _ask(self, *request: Any) -> Any:
        self._hear()
        self._send(*request)
        answer = self._receive()
        if isinstance(answer, MeasureError):
            raise answer
        return answer

    def _hear(self) -> None:
        while self._asked:
            self._baselines[self._asked[0]] = self._receive()
            self._asked.popleft()

    def _send(self, *request: Any) -> None:
        try:
            self._client.send(request)
        except OSError:
            raise MeasureError("the process that measures ended") from None

    def _receive(self) -> Any:
        try:
            return self._client.recv()
        except (EOFError, OSError):
            raise MeasureError("the process that measures ended") from None


class _Server:
    """The other side: one bench open at a time."""

    def __init__(
        self, client: Connection, modules: Sequence[Any], target: Any, limits: BenchLimits, build: Build,
        seed: int, programs: Sequence[WholeProgram],
    ) -> None:  # fmt: skip
        self.programs = programs
        self.client, self.modules, self.target = client, modules, target
        self.limits, self.build, self.seed = limits, build, seed
        self._opened: tuple[int, Bench] | None = None
        self._turns: Turns | None = None

    def serve(self, parent: int) -> NoReturn:
        """Answer until the other side is gone, then end the process."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            die_with_parent(parent)
            while True:
                request, *arguments = self.client.recv()
                try:
                    answer: Any = getattr(self, f"_{request}")(*arguments)
                except MeasureError as error:
                    answer = error
                except Exception as error:
                    answer = MeasureError(last_line(error))
                self.client.send(answer)
        except (EOFError, OSError):
            pass
        finally:
            os._exit(0)

    def _open(self, number: int) -> Outcome:
        return self._bench(number).baseline

    def _measure(self, number: int, texts: Sequence[str], best_s: float) -> list[Outcome]:
        return self._bench(number).measure_texts(texts, best_s)

    def _bench(self, number: int) -> Bench:
        if self._opened is None or self._opened[0] != number:
            if self._opened is not None:
                self._opened[1].close()
                self._opened = None
            bench = Bench(self.modules[number], self.target, self.limits, self.build, self.seed)
            self._opened = number, bench
        return self._opened[1]

    def _rehearse(self, number: int, texts: Sequence[str]) -> list[Outcome]:
        self._end()
        self._turns = Turns.of_schedules(
            self.modules[number], texts, self.target, self.limits, self.build, self.seed
        )
        return self._turns.outcomes

    def _rehearse_whole(self, parts: Sequence[Part], case: Case) -> list[Outcome]:
        self._end()
        self._turns = whole_turns(self.programs, parts, case, self.limits)
        return self._turns.outcomes

    def _turn(self, player: int) -> float:
        if self._turns is None:
            raise MeasureError("nothing was rehearsed")
        return self._turns.turn(player)

    def _end(self) -> None:
        if self._turns is not None:
            self._turns.close()
            self._turns = None


def _texts(modules: Iterable[Any]) -> list[str]:
    import tvm

    return [tvm.ir.save_json(module) for module in modules]
