"""Traces of the tasks of a TVM program: candidates compiled in memory, verified and timed in forks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gnnperf.backends.base import Trials, Tried, Whole
from gnnperf.backends.tvm.competitors import TORCH, torch_program
from gnnperf.backends.tvm.output import write_output
from gnnperf.backends.tvm.server import BenchServer
from gnnperf.backends.tvm.whole_kernel import checked_translation, exported_problem, measured_whole
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.program import BASELINE, CONSTANT_WEIGHTS, TvmProgram
from gnnperf.measure import Measurement, Timing
from gnnperf.measure.competitors import Competitor, joined
from gnnperf.measure.confine import available_threads
from gnnperf.measure.interleaved import Pace, in_turns
from gnnperf.measure.problem import Problem

FINALISTS = 3
"""Of the candidates that were measured, timed once more in turn with the baseline."""
FINALS_S = 4.0
"""Wall time for that of all tasks of a program, where they are many."""


class TvmExecutor:
    """See `Executor`. It forks when it is made: best before torch starts threads and a store is opened."""

    def __init__(
        self, program: TvmProgram, measuring: bool = True, server: BenchServer | None = None,
        wholes: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """measuring: off, nothing can be measured, and nothing is forked. server: of the caller's, who closes
        it, with the program's modules in their order; None: of its own. wholes: what an exported program is
        timed beside, besides PyTorch as it runs eagerly."""
        self._wholes = wholes
        self.program = program
        constant = program.whole is None and any(task.constant_weights for task in program.tasks)
        self.baseline_name, self.baseline_note = CONSTANT_WEIGHTS if constant else BASELINE, ""
        self._owned = measuring and server is None
        if self._owned:
            programs = [program.whole] if program.whole else ()
            server = BenchServer([t.module for t in program.tasks], program.target, programs=programs)
            first = next((n for n, t in enumerate(program.tasks) if t.objection is None), 0)
            server.prepare(first)  # it is at work while models are loaded
        self.server = server
        self._problem: Problem | None = None
        self.pace = Pace(budget_s=min(Pace().budget_s, FINALS_S / max(len(program.tasks), 1)))

    @property
    def verifies_whole(self) -> bool:
        return self.program.exported is not None

    def prepare(self, measuring: bool) -> None:
        """Inputs are made where they are needed."""

    def whole(self) -> Timing | None:
        """Nothing is tuned of a program that TVM translates wrongly: raises MeasureError. None of a module
        without a program around it."""
        if self.program.exported is None or self.server is None:
            return None
        self._problem = exported_problem(self.program.exported, self.program.tasks)
        return checked_translation(self.program.exported, self._problem, self.server)

    @contextmanager
    def opened(self, task: TvmTask, number: int) -> Iterator[TvmBench]:
        assert self.server is not None
        yield TvmBench(task, number, self.server, self.program.target, self.pace)

    def assemble(self, trials: Sequence[Trials]) -> Whole | None:
        program = self.program
        if self._problem is None:
            return None
        assert self.server is not None and program.exported is not None
        others = {how: partial(torch_program, program.exported, how=how) for how in (TORCH, *self._wholes)}
        try:
            return measured_whole(self._problem, trials, self.server, others)
        except MeasureError as error:
            raise MeasureError(f"the whole program cannot be measured: {error}") from None

    def provenance(self, measurement: Measurement) -> Mapping[str, Any]:
        return {
            "tvm": version("apache-tvm"),
            "target": {"kind": "llvm", "mcpu": str(self.program.target.attrs["mcpu"])},
            "threads": available_threads(),
        }

    def write(self, folder: Path, trials: Sequence[Trials], report: str) -> None:
        write_output(folder, self.program, trials, report)

    def close(self) -> None:
        if self._owned and self.server is not None:
            self.server.close()


class TvmBench:
    """See `Bench`. Raises MeasureError where the unscheduled function cannot be run."""

    def __init__(self, task: TvmTask, number: int, server: BenchServer, target: Any, pace: Pace) -> None:
        self.task, self.number, self.server, self.target, self.pace = task, number, server, target, pace
        self.baseline_name = CONSTANT_WEIGHTS if task.constant_weights else BASELINE
        self.baseline_note = ""
        self.baseline = server.baseline(number).measurement.timing
        self._best_s = self.baseline.runtime_s or math.inf

    def measure(self, candidates: Sequence[Any], count: int) -> Iterator[Tried]:
        chosen = candidates[:count]
        if not chosen:
            return iter(())
        outcomes = self.server.measure(self.number, [c.program for c in chosen], self._best_s)
        self._best_s = min([self._best_s, *(o.runtime_s for o in outcomes if o.runtime_s is not None)])
        found = [outcome.measurement.over(self.baseline) for outcome in outcomes]
        return zip(chosen, found, strict=True)

    def finals(
        self, tried: Sequence[Tried], competitors: Sequence[Competitor]
    ) -> tuple[list[Tried], Mapping[str, Measurement]]:
        """The fastest candidates, the unscheduled function and competitors, verified and timed in turn."""
        found = [*tried]
        right = sorted((m.runtime_s, n) for n, (_, m) in enumerate(found) if m.runtime_s is not None)
        finalists = [n for _, n in right[:FINALISTS]]
        if not finalists and not competitors:
            return found, {}
        modules = [found[n][0].program for n in finalists]
        with (
            self.server.rehearsed(self.number, modules) as (outcomes, turns),
            joined(competitors, self.task) as (others, beside),
        ):
            if outcomes[0].status != "ok":
                raise MeasureError(f"the unscheduled function: {outcomes[0].status}, {outcomes[0].detail}")
            timed = in_turns({**{str(player): turn for player, turn in turns.items()}, **others}, self.pace)
        self.baseline = timed["0"].timing
        # The others may not win by a baseline that was measured when the machine was slower.
        found = [(candidate, measurement.over(self.baseline)) for candidate, measurement in found]
        for player, n in enumerate(finalists, start=1):
            measured = timed[str(player)] if player in turns else outcomes[player].measurement
            found[n] = found[n][0], measured.over(timed["0"])
        return found, {**beside, **{name: timed[name] for name in others}}
