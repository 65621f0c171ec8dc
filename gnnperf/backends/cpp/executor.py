"""Recipes of a program of loop nests: candidates compiled, verified and timed beside the nest's baseline."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from gnnperf.backends.base import Candidate, Trials, Tried, Whole
from gnnperf.backends.cpp.assemble import assemble, baseline_recipe
from gnnperf.backends.cpp.baselines import BaselineSources
from gnnperf.backends.cpp.bounds import require_within_bounds
from gnnperf.backends.cpp.cases import UnitCase, WholeKernel
from gnnperf.backends.cpp.competitors import beside, competitors_of
from gnnperf.backends.cpp.output import write_output
from gnnperf.backends.cpp.python_run import PythonRun, difference
from gnnperf.backends.cpp.trials import NestBench
from gnnperf.errors import BuildError, InputError, MeasureError, NotApplicable
from gnnperf.frontends.nest_program import Measurable, NestTask, TunableProgram, Tuned
from gnnperf.measure import Compiler, Measurement, Runner, Source, Timing
from gnnperf.measure.competitors import Competitor
from gnnperf.measure.supervisor import Service


class CppExecutor:
    """See `Executor`. wanted: one of the program's `baselines`; None for the first."""

    verifies_whole: ClassVar[bool] = True

    def __init__(
        self,
        program: TunableProgram,
        wanted: str | None = None,
        compiler: Compiler | None = None,
        runner: Runner | None = None,
        ahead: bool = False,
        competitors: Sequence[str] = (),
    ) -> None:
        """compiler, runner: of the caller's, who closes them; None: of its own. ahead: begin to find and
        compile the whole program's baseline in a fork, while the caller loads models. competitors: of the
        whole, see `competitors_of`. Raises InputError."""
        self.program = program
        self._competitors = competitors_of(program, competitors)
        self.wanted = wanted or next(iter(program.baselines))
        if self.wanted not in program.baselines:
            known = ", ".join(program.baselines)
            raise InputError(f"--baseline: expected one of {known}, got {self.wanted!r}")
        self.baseline_name, self.baseline_note = program.baselines[self.wanted], ""
        self._compiler, self.runner = compiler or Compiler(), runner or Runner()
        self._owned: list[Compiler | Runner] = [] if compiler else [self._compiler]
        self._owned += [] if runner else [self.runner]
        self._whole: WholeKernel | None = None
        self._tuned: Tuned | None = None
        self._sources: BaselineSources | None = None
        self._python: PythonRun | None = None
        self._ahead: tuple[Future[None], Service] | None = None
        if ahead:
            service = Service(_Wanted(program.whole, self.wanted))  # a fork: before any thread is started
            self.runner.start()
            pool = ThreadPoolExecutor(1)
            self._ahead = pool.submit(self._build_ahead, service), service
            pool.shutdown(wait=False)

    def _build_ahead(self, service: Service) -> None:
        with suppress(MeasureError):  # it is told where it is built in earnest
            self._sources = service.ask("sources")
            self._compiler.build_all(self._sources.all)

    @property
    def compiler(self) -> Compiler:
        """Once what was begun ahead is done: its results are kept, its errors come again."""
        if self._ahead is not None:
            begun, service = self._ahead
            wait([begun])
            service.close()
            self._ahead = None
        return self._compiler

    def prepare(self, measuring: bool) -> None:
        self.program.capture(self.compiler, self.runner, for_graphs=not measuring)
        if measuring:
            for task in self.program.tasks:
                if task.objection is None:
                    # What does not run by itself has no candidates either.
                    with suppress(BuildError, MeasureError, NotApplicable):
                        require_within_bounds(task.nest, task.data, self.compiler, self.runner)
            self._python = PythonRun(self.program, self.program.whole.data)

    def whole(self) -> Timing:
        whole = WholeKernel.prepare(
            self.program.whole, self.wanted, self.compiler, self.runner, self._sources
        )
        self._whole, self.baseline_name, self.baseline_note = whole, whole.built.name, whole.built.note
        return whole.baseline

    @contextmanager
    def opened(self, task: NestTask, number: int) -> Iterator[CppBench]:
        if self._whole is not None and self.program.is_all(task):
            case = UnitCase.of_whole(task, self._whole)  # compiled, verified and timed once
        else:
            case = UnitCase.prepare(task, self.wanted, self.compiler, self.runner)
        yield CppBench(case, self)

    def assemble(self, trials: Sequence[Trials]) -> Whole:
        found = self._compared_with_python(self._assembled(trials))
        if not self._competitors:
            return found
        assert self._whole is not None
        kept = self._whole.built.library
        if self._tuned is not None:
            kept = self.compiler.build(self._whole.tuned_source(self._tuned))
        started = time.monotonic()
        others = beside(self._whole, kept, self._competitors, self.runner)
        return replace(found, competitors=others, competitors_s=time.monotonic() - started)

    def _compared_with_python(self, found: Whole) -> Whole:
        """Python has had the time that all else took."""
        computed = self._python.found() if self._python else None
        if computed is None or self._whole is None:
            return found
        problem = self._whole.built.problem
        said = difference(problem.reference, computed, problem.reduction_length)
        return replace(found, evidence=replace(found.evidence, python=said))

    def _assembled(self, trials: Sequence[Trials]) -> Whole:
        assert self._whole is not None
        baseline = self._whole.baseline
        if not any(one.winner or baseline_recipe(one) for one in trials):
            return Whole(baseline, baseline, evidence=self._whole.evidence)
        found, note = assemble(self.program, trials, self._whole, self.compiler, self.runner)
        if found is None:
            return Whole(baseline, baseline, note=note, evidence=self._whole.evidence)
        self._tuned, measured = found.program, found.measurement
        assert measured.baseline_s is not None and measured.baseline_interval_s is not None
        return Whole(
            Timing(measured.baseline_s, measured.baseline_interval_s),
            measured.timing,
            measured.speedup or 1.0,
            measured.speedup_interval,
            False,
            found.schedules,
            note=note,
            evidence=found.evidence,
        )

    def provenance(self, measurement: Measurement) -> Mapping[str, Any]:
        found = {
            "compiler": measurement.compiler, "flags": measurement.flags, "threads": measurement.threads
        }  # fmt: skip
        return {**found, "dace": version("dace")} if self.program.frontend == "dace" else found

    @property
    def tuned(self) -> Tuned | None:
        """The program that won; None where the baseline is kept."""
        return self._tuned

    def write(self, folder: Path, trials: Sequence[Trials], report: str) -> None:
        best = self._tuned or self.program.kept(self.baseline_name)
        with Compiler() as compiler:
            write_output(folder, self.program, best, report, compiler)

    def close(self) -> None:
        if self._python is not None:
            self._python.close()
        if self._ahead is not None:
            with suppress(OSError):  # whoever waits for an answer ends the process
                self._ahead[1].child.channel.shutdown(socket.SHUT_RDWR)
        _ = self.compiler
        for owned in reversed(self._owned):
            owned.close()


@dataclass(frozen=True)
class _Wanted:
    """The baseline that is wanted of a program."""

    code: Measurable
    name: str

    def sources(self) -> BaselineSources:
        return BaselineSources.of(self.code, self.name)


class CppBench:
    """See `NestBench`."""

    def __init__(self, case: UnitCase, executor: CppExecutor) -> None:
        self.case = case
        self.baseline = case.baseline
        self.baseline_name, self.baseline_note = case.built.name, case.built.note
        self.bench = NestBench(case.case, executor.compiler, executor.runner, case.limits)

    def measure(self, candidates: Sequence[Candidate], count: int) -> Iterator[Tried]:
        chosen = self._first_distinct(candidates, count)
        return zip([c for c, _ in chosen], self.bench.measure([p for _, p in chosen]), strict=True)

    def finals(
        self, tried: Sequence[Tried], competitors: Sequence[Competitor]
    ) -> tuple[list[Tried], Mapping[str, Measurement]]:
        """All were timed in turn with the baseline."""
        return [*tried], {}

    def _first_distinct(
        self, candidates: Sequence[Candidate], count: int
    ) -> list[tuple[Candidate, Source | Measurement]]:
        """The first candidates that apply and lower to code of their own; before and between them, those that
        do not apply."""
        chosen: list[tuple[Candidate, Source | Measurement]] = []
        codes: set[str] = set()
        for candidate in candidates:
            if len(codes) == count:
                break
            prepared = self.bench.prepare(candidate.schedule)  # type: ignore[arg-type]  # a Recipe
            if isinstance(prepared, Source):
                if prepared.text in codes:
                    continue
                codes.add(prepared.text)
            chosen.append((candidate, prepared))
        return chosen
