"""From a nest, or a whole program of nests, to something that can be measured."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from gnnperf.backends.cpp.baselines import LONGEST_SECOND_RUN_S, Baseline, BaselineSources, build_baseline
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
    """A nest with its compiled baseline and the results that are right."""

    case: NestCase
    baseline_name: str
    baseline_note: str
    baseline: Timing
    limits: Limits

    @property
    def baseline_s(self) -> float:
        """Median runtime of the baseline, in seconds."""
        return self.baseline.runtime_s

    @staticmethod
    def of_whole(task: NestTask, whole: WholeKernel) -> UnitCase:
        """Of a nest that is the whole program, whose baseline was run."""
        case = NestCase(
            task.nest, {**task.data, **whole.code.data}, task.outputs, tuple(whole.code.inouts),
            tuple(whole.code.updated), whole.reduction_length, whole.reference, whole.library,
            whole.baseline_once_s, task.quantised,
        )  # fmt: skip
        limits = Limits(timeout_s=max(2.0, SLOWEST * whole.baseline_s))
        return UnitCase(case, whole.baseline_name, whole.baseline_note, whole.baseline, limits)

    @staticmethod
    def prepare(task: NestTask, wanted: str, compiler: Compiler, runner: Runner) -> UnitCase:
        """Compile the nest's unscheduled code and its baseline, and run both. wanted: one of its `baselines`.

        Raises MeasureError or BuildError where the nest cannot run alone.
        """
        baseline = build_baseline(task, wanted, compiler, runner)
        timing = _timed(baseline, task, runner, SINGLE_RUN)
        case = NestCase(
            task.nest, task.data, task.outputs, tuple(task.inouts), tuple(task.updated),
            baseline.reduction_length, baseline.reference, baseline.library,
            baseline.once.runtime_s if baseline.once else None, task.quantised,
        )  # fmt: skip
        limits = Limits(timeout_s=max(2.0, SLOWEST * timing.runtime_s))
        return UnitCase(case, baseline.name, baseline.reason or "", timing, limits)


def _timed(baseline: Baseline, code: Measurable, runner: Runner, limits: Limits) -> Timing:
    """What the baseline takes. Raises MeasureError where it does not run."""
    if baseline.once is not None:
        return baseline.once
    timed = runner.measure(
        None,
        baseline.library,
        code.data,
        code.outputs,
        tuple(code.inouts),
        None,
        limits,
        updated=code.updated,
    )
    if timed.status != "ok":
        raise MeasureError(f"the baseline does not run alone: {timed.status}, {timed.detail}")
    return timed.timing


@dataclass(frozen=True)
class WholeKernel:
    """A whole program with its baseline, and the results of the plain program that all must match."""

    code: Measurable
    library: Library
    plain: Library
    reference: Mapping[str, NDArray[Any]]
    plain_s: float
    reduction_length: int
    baseline_name: str
    baseline_note: str
    baseline: Timing
    baseline_once_s: float | None = None
    """What the baseline's only run took, where that is too long to run it again."""

    @property
    def baseline_s(self) -> float:
        """Median runtime of the baseline, in seconds."""
        return self.baseline.runtime_s

    @staticmethod
    def prepare(
        code: Measurable, wanted: str, compiler: Compiler, runner: Runner,
        sources: BaselineSources | None = None,
    ) -> WholeKernel:  # fmt: skip
        """Compile and time the baseline. sources: of it, where they are known. Raises GnnperfError where even
        the plain code does not run."""
        limits = Limits(timeout_s=300.0)
        try:
            baseline = build_baseline(code, wanted, compiler, runner, limits, sources)
        except BuildError as error:
            raise BuildError(f"the unscheduled kernel does not compile: {error}") from None
        except MeasureError as error:
            raise MeasureError(
                f"the kernel fails before anything is tuned ({error}); check its subscripts, inputs and sizes"
            ) from None
        timing = _timed(baseline, code, runner, replace(limits, budget_s=0.3))
        return WholeKernel(
            code, baseline.library, baseline.plain, baseline.reference, baseline.plain_s,
            baseline.reduction_length, baseline.name, baseline.reason or "", timing,
            baseline.once.runtime_s if baseline.once else None,
        )  # fmt: skip

    def measure(self, tuned: Tuned, compiler: Compiler, runner: Runner, budget_s: float = 1.0) -> Measurement:
        """Verify a tuned program against the reference and time it beside the baseline, in several
        processes. Raises BuildError where it does not compile."""
        library = compiler.build(self.tuned_source(tuned))
        limits = Limits(
            timeout_s=max(5.0, SLOWEST * self.baseline_s), budget_s=budget_s, processes=3, cutoff=float("inf")
        )
        return runner.measure(
            self.library if self.baseline_once_s is None else None,
            library,
            self.code.data,
            self.code.outputs,
            tuple(self.code.inouts),
            self.reference,
            limits,
            reduction_length=self.reduction_length,
            baseline_s=self.baseline_once_s,
            updated=self.code.updated,
            quantised=self.code.quantised,
        )

    def tuned_source(self, tuned: Tuned) -> Source:
        """Its code, under one name: it is compiled once. Raises BuildError."""
        return tuned.source(f"{self.code.name}_tuned")

    @cached_property
    def evidence(self) -> Evidence:
        """What agreeing with the reference is worth."""
        rounded = sorted({*self.code.quantised} & {*self.reference})
        return replace(Evidence.of(self.reference, self.code.data), quantised=rounded)

    def verify_elsewhere(
        self, tuned: Tuned, others: Iterable[tuple[str, Arguments]], compiler: Compiler, runner: Runner
    ) -> tuple[Evidence, str]:
        """Verify a tuned program, which is right on the inputs, on others, as long as that takes little.

        others: what they are like, and the arguments; those on which the plain program crashes, or computes
        what is infinite or far too large, say nothing. Returns what all of it is worth, and in a line what
        is wrong, empty where nothing is.
        """
        code, inouts, limits = self.code, tuple(self.code.inouts), Limits(timeout_s=max(5.0, LONGEST_CHECK_S))
        evidence, started = self.evidence, time.monotonic()
        if self.plain_s > LONGEST_SECOND_RUN_S:
            return evidence, ""
        library = compiler.build(self.tuned_source(tuned))

        def run(which: Library, inputs: Arguments) -> dict[str, NDArray[Any]]:
            return runner.reference(which, inputs, code.outputs, inouts, limits)

        for words, inputs in others:
            try:
                expected, moved = run(self.plain, inputs), run(self.plain, perturbed(inputs))
            except MeasureError:
                continue
            if all(is_moderate(array) for array in expected.values()):
                length = equivalent_length(expected, moved, self.reduction_length)
                try:
                    fault = verify(expected, run(library, inputs), length, code.quantised)
                except MeasureError as error:
                    fault = str(error)
                if fault:
                    return evidence, f"wrong on other inputs, {words}: {fault}"
                evidence = evidence.joined(Evidence.of(expected, inputs), words)
            if time.monotonic() - started > LONGEST_CHECK_S:
                break
        return evidence, ""
