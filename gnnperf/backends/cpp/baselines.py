"""What the user would have got anyway, compiled, with the results that are right."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from gnnperf.errors import BuildError, MeasureError, TookTooLong
from gnnperf.frontends.nest_program import Measurable
from gnnperf.measure import (
    Compiler,
    Library,
    Limits,
    Measurement,
    Runner,
    Source,
    Timing,
    equivalent_length,
    perturbed,
    verify,
)
from gnnperf.measure.candidate import OUTCLASSED, VERY_LONG_RUN_S
from gnnperf.measure.problem import Problem

LONGEST_SECOND_RUN_S = 2.0
"""What takes longer is not run again to see how it amplifies rounding errors."""


@dataclass(frozen=True)
class Baseline:
    """`name` is what was built, `reason` why it is not what was asked for, `plain` the plain program,
    `problem` what it computes from the inputs, in `plain_s` seconds. once: what its only run took, where that
    is so long that it is not run again."""

    library: Library
    plain: Library
    name: str
    reason: str | None
    problem: Problem
    plain_s: float
    once: Timing | None = None

    @property
    def note(self) -> str:
        """The reason, for people; empty where there is none."""
        return self.reason or ""

    @property
    def once_s(self) -> float | None:
        return None if self.once is None else self.once.runtime_s


@dataclass(frozen=True)
class BaselineSources:
    """What a baseline is built of. optimised: by the name that reports give them, those first that are likely
    to be fast, which may spare running others to their end; none where the plain program is the baseline;
    reason: why it is, though the optimised one was wanted."""

    plain: Source
    optimised: Mapping[str, Source] = field(default_factory=dict)
    reason: str | None = None

    @staticmethod
    def of(code: Measurable, wanted: str) -> BaselineSources:
        """wanted: one of the code's `baselines`. Raises BuildError where there is no plain program."""
        plain = code.plain_source()
        if wanted == [*code.baselines][-1]:
            return BaselineSources(plain)
        try:
            return BaselineSources(plain, code.optimised_sources())
        except BuildError as error:
            return BaselineSources(plain, reason=str(error))

    @property
    def all(self) -> list[Source]:
        """To be built, the plain program first."""
        return [self.plain, *self.optimised.values()]


def build_baseline(
    code: Measurable,
    wanted: str,
    compiler: Compiler,
    runner: Runner,
    limits: Limits = Limits(timeout_s=60.0),  # noqa: B008  (immutable)
    sources: BaselineSources | None = None,
) -> Baseline:
    """The baseline of a program or of a nest, with the name that reports give it.

    wanted: one of the code's `baselines`. Of several optimised ones it is the fastest; it becomes the plain
    one, with the reason, where none can be made or compiled, or all compute something else. sources: of the
    code, where they are known. Raises BuildError or MeasureError where the plain program does not compile or
    run.
    """
    sources = sources or BaselineSources.of(code, wanted)
    baselines, plain_name, reason = code.baselines, [*code.baselines][-1], sources.reason
    plain, *optimised = compiler.build_all(sources.all)
    if isinstance(plain, BuildError):
        raise plain
    inouts = tuple(code.inouts)

    def run(library: Library, inputs: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        return runner.reference(library, inputs, code.outputs, inouts, limits)

    length = code.reduction_length
    reference, plain_s = runner.run_once(plain, code.data, code.outputs, inouts, limits)
    if plain_s < LONGEST_SECOND_RUN_S:
        with contextlib.suppress(MeasureError):
            length = equivalent_length(reference, run(plain, perturbed(code.data)), length)
        if length > code.reduction_length and (fault := verify(reference, run(plain, code.data), length)):
            raise MeasureError(f"its results differ from run to run, nothing can be verified: {fault}")
    problem = Problem(code.data, code.outputs, reference, length, code.updated, code.quantised)
    right: dict[str, Library] = {}
    once_s: dict[str, float] = {}
    slower: list[str] = []
    for name, library in zip(sources.optimised, optimised, strict=True):
        patience_s = limits.timeout_s
        if right:
            patience_s = min(patience_s, max(LONGEST_SECOND_RUN_S, OUTCLASSED * min(once_s.values())))
        try:
            if isinstance(library, BuildError):
                raise library
            found, once_s[name] = runner.run_once(
                library, code.data, code.outputs, inouts, replace(limits, timeout_s=patience_s)
            )
            wrong = problem.verify(found)
        except TookTooLong as error:
            if right:
                slower.append(f"{name} takes more than {patience_s / min(once_s.values()):.1f} times as long")
            reason = str(error)
        except (BuildError, MeasureError) as error:
            reason = str(error)
        else:
            if wrong is None:
                right[name] = library
            else:
                reason = f"{name} changes the results: {wrong}"
    if not right:
        return Baseline(plain, plain, baselines[plain_name], reason, problem, plain_s, _once(plain_s))
    times_s = {name: once_s[name] for name in right}
    if (
        max(times_s.values()) < max(LONGEST_SECOND_RUN_S, OUTCLASSED * min(times_s.values()))
        and len(right) > 1
    ):
        times_s |= _times_s(right, code, runner, limits)
    fastest = min(times_s, key=lambda name: times_s[name])
    for name, runtime_s in times_s.items():
        if name != fastest:
            much = f"takes {runtime_s / times_s[fastest]:.1f} times as long"
            slower.append(f"{name} {much if runtime_s < math.inf else 'fails when it is run again'}")
    reason, once = "; ".join(slower) or None, _once(once_s[fastest])
    return Baseline(right[fastest], plain, fastest, reason, problem, plain_s, once)


def timed(
    library: Library, code: Measurable, runner: Runner, limits: Limits, baseline: Library | None = None,
    reference: Mapping[str, NDArray[Any]] | None = None, **options: Any,
) -> Measurement:  # fmt: skip
    """As `Runner.measure`, on the inputs of a program or of a nest."""
    return runner.measure(
        baseline, library, code.data, code.outputs, tuple(code.inouts), reference, limits,
        updated=code.updated, **options,
    )  # fmt: skip


def _once(runtime_s: float) -> Timing | None:
    return Timing(runtime_s, (runtime_s, runtime_s)) if runtime_s > VERY_LONG_RUN_S else None


def _times_s(
    libraries: Mapping[str, Library], code: Measurable, runner: Runner, limits: Limits
) -> dict[str, float]:
    """Median runtimes of some programs, the first anew in turn with each other: inf for one that fails, none
    of the first where all others do."""
    quick = replace(limits, budget_s=0.1, min_samples=1)
    first, *others = libraries
    found = {}
    for name in others:
        measured = timed(libraries[name], code, runner, quick, libraries[first])
        if measured.baseline_s is not None:
            found[first] = measured.baseline_s
        found[name] = measured.runtime_s or math.inf
    return found
