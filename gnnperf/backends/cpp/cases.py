"""From a nest, or a whole program of nests, to something that can be measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from gnnperf.backends.cpp.baselines import (
    LONGEST_SECOND_RUN_S,
    Baseline,
    BaselineSources,
    build_baseline,
    timed,
)
from gnnperf.backends.cpp.trials import NestCase
from gnnperf.errors import BuildError, MeasureError
from gnnperf.frontends.nest_program import Measurable, NestTask, Tuned
from gnnperf.measure import (
    Compiler,
    Evidence,
    Library,
    Limits,
    Measurement,
    Runner,
    Source,
    Timing,
    equivalent_length,
    is_moderate,
    is_stable,
    perturbed,
    verify,
)

Arguments = Mapping[str, Any]
SLOWEST = 30.0
"""A candidate that takes this many times its baseline, and two seconds, counts as hung."""
LONGEST_CHECK_S = 0.5
"""No other inputs are tried after this time."""
SINGLE_RUN = Limits(timeout_s=120.0, budget_s=0.0, min_samples=3, cutoff=float("inf"))


@dataclass(frozen=True)
class UnitCase:
    """A nest with its compiled baseline, what that takes, and the results that are right."""

    case: NestCase
    built: Baseline
    baseline: Timing

    @property
    def limits(self) -> Limits:
        """Of its candidates."""
        return Limits(timeout_s=max(2.0, SLOWEST * self.baseline.runtime_s))

    @staticmethod
    def of_whole(task: NestTask, whole: WholeKernel) -> UnitCase:
        """Of a nest that is the whole program, whose baseline was run."""
        return UnitCase._of(task, whole.code, whole.built, whole.baseline)

    @staticmethod
    def prepare(task: NestTask, wanted: str, compiler: Compiler, runner: Runner) -> UnitCase:
        """Compile the nest's unscheduled code and its baseline, and run both. wanted: one of its `baselines`.

        Raises MeasureError or BuildError where the nest cannot run alone.
        """
        built = build_baseline(task, wanted, compiler, runner)
        return UnitCase._of(task, task, built, _timing(built, task, runner, SINGLE_RUN))

    @staticmethod
    def _of(task: NestTask, code: Measurable, built: Baseline, baseline: Timing) -> UnitCase:
        """code: what was built."""
        problem = replace(
            built.problem, inputs={**task.data, **code.data}, outputs=task.outputs, quantised=task.quantised
        )
        case = NestCase(task.nest, problem, tuple(code.inouts), built.library, built.once_s)
        return UnitCase(case, built, baseline)


def _timing(built: Baseline, code: Measurable, runner: Runner, limits: Limits) -> Timing:
    """What the baseline takes. Raises MeasureError where it does not run."""
    if built.once is not None:
        return built.once
    found = timed(built.library, code, runner, limits)
    if found.status != "ok":
        raise MeasureError(f"the baseline does not run alone: {found.status}, {found.detail}")
    return found.timing


@dataclass(frozen=True)
class WholeKernel:
    """A whole program with its compiled baseline, what that takes, and the results that all must match."""

    code: Measurable
    built: Baseline
    baseline: Timing

    @staticmethod
    def prepare(
        code: Measurable, wanted: str, compiler: Compiler, runner: Runner,
        sources: BaselineSources | None = None,
    ) -> WholeKernel:  # fmt: skip
        """Compile and time the baseline. sources: of it, where they are known. Raises GnnperfError where even
        the plain code does not run."""
        limits = Limits(timeout_s=300.0)
        try:
            built = build_baseline(code, wanted, compiler, runner, limits, sources)
        except BuildError as error:
            raise BuildError(f"the unscheduled kernel does not compile: {error}") from None
        except MeasureError as error:
            raise MeasureError(
                f"the kernel fails before anything is tuned ({error}); check its subscripts, inputs and sizes"
            ) from None
        return WholeKernel(code, built, _timing(built, code, runner, replace(limits, budget_s=0.3)))

    def measure(self, tuned: Tuned, compiler: Compiler, runner: Runner, budget_s: float = 1.0) -> Measurement:
        """Verify a tuned program against the reference and time it beside the baseline, in several
        processes. Raises BuildError where it does not compile."""
        library, built = compiler.build(self.tuned_source(tuned)), self.built
        limits = Limits(
            timeout_s=max(5.0, SLOWEST * self.baseline.runtime_s), budget_s=budget_s, processes=3,
            cutoff=float("inf"),
        )  # fmt: skip
        return timed(
            library, self.code, runner, limits, None if built.once else built.library,
            built.problem.reference, reduction_length=built.problem.reduction_length,
            baseline_s=built.once_s, quantised=built.problem.quantised,
        )  # fmt: skip

    def tuned_source(self, tuned: Tuned) -> Source:
        """Its code, under one name: it is compiled once. Raises BuildError."""
        return tuned.source(f"{self.code.name}_tuned")

    @cached_property
    def evidence(self) -> Evidence:
        """What agreeing with the reference is worth."""
        problem = self.built.problem
        rounded = sorted({*problem.quantised} & {*problem.reference})
        return replace(Evidence.of(problem.reference, problem.inputs), quantised=rounded)

    def verify_elsewhere(
        self,
        tuned: Tuned,
        others: Iterable[tuple[str, Arguments]],
        in_python: Callable[[Arguments], Mapping[str, NDArray[Any]] | None],
        compiler: Compiler,
        runner: Runner,
    ) -> tuple[Evidence, str]:
        """Verify a tuned program, which is right on the inputs, on others, as long as that takes little.

        others: what they are like, and the arguments; those on which the plain program crashes, computes what
        is infinite or far too large, or what one rounding of them changes by more than the most that is
        tolerated (a division by almost zero), say nothing. in_python: what Python computes of arguments,
        None where that is not known; those of which the plain program computes something else say nothing
        either (it compares with NaN, without regard for which all are compiled). Returns what all of it is
        worth, and in a line what is wrong, empty where nothing is.
        """
        code, inouts, limits = self.code, tuple(self.code.inouts), Limits(timeout_s=max(5.0, LONGEST_CHECK_S))
        evidence, started = self.evidence, time.monotonic()
        if self.built.plain_s > LONGEST_SECOND_RUN_S:
            return evidence, ""
        library, plain = compiler.build(self.tuned_source(tuned)), self.built.plain

        def run(which: Library, inputs: Arguments) -> dict[str, NDArray[Any]]:
            return runner.reference(which, inputs, code.outputs, inouts, limits)

        for words, inputs in others:
            try:
                expected = run(plain, inputs)
                moved = run(self.built.library, perturbed(inputs))  # which is faster than the plain program
            except MeasureError:
                continue
            if all(map(is_moderate, expected.values())) and is_stable(expected, moved):
                length = equivalent_length(expected, moved, self.built.problem.reduction_length)
                try:
                    found = run(library, inputs)
                except MeasureError as error:
                    return evidence, f"wrong on other inputs, {words}: {error}"
                fault = verify(expected, found, length, code.quantised)
                if not fault:
                    evidence = evidence.joined(Evidence.of(expected, inputs), words)
                elif (meant := in_python(inputs)) is None or not verify(
                    meant, expected, length, code.quantised
                ):
                    return evidence, f"wrong on other inputs, {words}: {fault}"
            if time.monotonic() - started > LONGEST_CHECK_S:
                break
        return evidence, ""
