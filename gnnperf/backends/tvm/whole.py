"""Whole programs compiled, verified on one case and timed in turn, in a process of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from numpy.typing import NDArray

from gnnperf.backends.tvm.batch import last_line
from gnnperf.backends.tvm.interleaved import Turns, compiled
from gnnperf.backends.tvm.outcome import BenchLimits, Outcome
from gnnperf.devices import MachineLock
from gnnperf.frontends.tvm.whole_program import MAIN, WholeProgram
from gnnperf.measure import verify
from gnnperf.measure.confine import prefer_this_process

Part = tuple[int, Mapping[str, str]]
"""Number of a program, and scheduled modules of its tasks by name, as `tvm.ir.save_json` writes them."""


@dataclass(frozen=True)
class Case:
    """inputs: arrays that programs are run on. outputs: what is right. length: of the sum whose tolerance
    applies (`measure.relative_tolerance`)."""

    inputs: Sequence[NDArray[Any]]
    outputs: Sequence[NDArray[Any]]
    length: int


def whole_turns(
    programs: Sequence[WholeProgram], parts: Sequence[Part], case: Case, limits: BenchLimits
) -> Turns:
    """A player for each part. Raises MeasureError where the process ends."""
    return Turns(lambda client: _Players(client, programs, case, limits).play(parts), len(parts))


@dataclass
class _Players:
    """Whole programs."""

    client: Connection
    programs: Sequence[WholeProgram]
    case: Case
    limits: BenchLimits

    def play(self, parts: Sequence[Part]) -> None:
        import tvm

        built = compiled(self._executable, parts)
        inputs = [tvm.runtime.tensor(array) for array in self.case.inputs]
        players: list[Any] = []
        with MachineLock():
            prefer_this_process()
            for (number, _), executable in zip(parts, built, strict=True):
                player, outcome = self._verified(self.programs[number], executable, inputs)
                players.append(player)
                self.client.send(outcome)
        while True:
            evaluate, arguments = players[self.client.recv()]
            self.client.send(float(evaluate(*arguments).results[0]))

    def _executable(self, part: Part) -> Any:
        import tvm

        number, texts = part
        return self.programs[number].compiled({name: tvm.ir.load_json(text) for name, text in texts.items()})

    def _verified(self, program: WholeProgram, executable: Any, inputs: Sequence[Any]) -> tuple[Any, Outcome]:
        import tvm

        if isinstance(executable, Outcome):
            return None, executable
        try:
            machine, weights = program.machine(executable)
            arguments = [*inputs, *weights]
            results = machine[MAIN](*arguments)
        except Exception as error:
            return None, Outcome("run_error", detail=last_line(error))
        if fault := self._fault(results):
            return None, Outcome("wrong_result", detail=fault[:300])
        evaluate = machine.time_evaluator(
            MAIN, tvm.cpu(), number=1, repeat=1, min_repeat_ms=round(1000 * self.limits.sample_s)
        )
        return (evaluate, arguments), Outcome("ok")

    def _fault(self, results: Any) -> str | None:
        found = [results] if hasattr(results, "numpy") else list(results)
        names = [f"result {n}" for n in range(max(len(found), len(self.case.outputs)))]
        expected = dict(zip(names, self.case.outputs, strict=False))
        return verify(expected, {n: r.numpy() for n, r in zip(names, found, strict=False)}, self.case.length)
