"""Put winners back into the program and let the whole decide.

A nest's winner was found alone. In the whole, what was left untuned matters as well: a kernel whose
other parts lose the fusion or the allocations that the baseline gave them may be slower in spite of
its winners. So several assemblies are built, all are verified, and the fastest counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from numpy.typing import NDArray

from gnnperf.backends.base import Trials, fastest_right, unverifiable
from gnnperf.backends.cpp.cases import Arguments, WholeKernel
from gnnperf.backends.cpp.python_run import PythonRun
from gnnperf.errors import BuildError, GnnperfError
from gnnperf.frontends.native import native_function
from gnnperf.frontends.nest_program import TunableProgram, Tuned
from gnnperf.measure import Compiler, Evidence, Measurement, Runner
from gnnperf.schedules.recipes import Recipe

LONGEST_SECOND_OPINION_S = 5.0
"""What Python may take for arguments on which a tuned program differs from the plain one."""
SECOND_LOOK_S = 3.0
"""Timing budget when the whole looks faster but its interval still holds 1."""


@dataclass(frozen=True)
class Assembly:
    """The tuned program that won, its measurement, the schedule of each replaced task by number, and what
    its results were verified on."""

    program: Tuned
    measurement: Measurement
    schedules: Mapping[int, Recipe]
    evidence: Evidence


def assemble(
    program: TunableProgram, trials: Sequence[Trials], whole: WholeKernel, compiler: Compiler, runner: Runner
) -> tuple[Assembly | None, str]:
    """The fastest verified assembly, or None and the reason why the baseline is kept."""
    reasons: list[str] = []
    best: Assembly | None = None

    def in_python(inputs: Arguments) -> Mapping[str, NDArray[Any]] | None:
        return PythonRun(program, inputs).found(LONGEST_SECOND_OPINION_S)

    for schedules, forms in _variants(program, trials, reasons):
        for tuned in forms:
            try:
                measurement = whole.measure(tuned, compiler, runner)
                if _undecided(measurement):
                    measurement = whole.measure(tuned, compiler, runner, SECOND_LOOK_S)
            except BuildError as error:
                reasons.append(f"the tuned kernel could not be built ({error})")
                continue
            reason = _refusal(measurement)
            evidence, fault = Evidence(), ""
            if not reason:
                others = program.other_inputs()
                if whole.evidence.unverifiable:
                    others = chain(others, program.nearby_inputs())
                evidence, fault = whole.verify_elsewhere(tuned, others, in_python, compiler, runner)
                reason = f"the tuned kernel is {fault}" if fault else _silence(evidence, whole)
            if reason:
                reasons.append(reason)
            elif best is None or (measurement.runtime_s or 0.0) < (best.measurement.runtime_s or 0.0):
                best = Assembly(tuned, measurement, schedules, evidence)
            if measurement.status == "ok" and not fault:
                break  # else the frontend's optimisation of the rest broke it: try without
    if best is not None:
        return best, ""
    return None, f"{'; '.join(dict.fromkeys(reasons))}; the baseline is kept"


def _variants(
    program: TunableProgram, trials: Sequence[Trials], reasons: list[str]
) -> Iterator[tuple[dict[int, Recipe], Iterator[Tuned]]]:
    """Winners with the best that is known elsewhere, and winners alone."""
    winners: dict[int, Recipe] = {t.number: t.winner[0].schedule for t in trials if t.winner is not None}
    others = {t.number: best for t in trials if t.winner is None and (best := _best_known(t))}
    tasks = {t.number: t.task for t in trials}
    for schedules in filter(None, [{**winners, **others}, winners] if others else [winners]):
        functions = {
            tasks[n].index: native_function(recipe, tasks[n].nest, f"gnnperf_unit_{tasks[n].index}")
            for n, recipe in schedules.items()
        }
        try:
            forms = program.tuned(functions)
            first = next(forms)
        except GnnperfError as error:
            reasons.append(f"the tuned kernel could not be put together ({error})")
            continue
        yield schedules, _chained(first, forms)


def baseline_recipe(trials: Trials) -> Recipe | None:
    """What the task's baseline is, where that is a recipe: one that the whole program has not been given."""
    recipe: Recipe | None = trials.task.recipes.get(trials.baseline_name)
    return recipe


def _best_known(trials: Trials) -> Recipe | None:
    """The fastest form of a task that has no winner, its baseline among them; None where none ran."""
    best, recipe = fastest_right(trials.tried), baseline_recipe(trials)
    if best is None or (recipe and (best[1].speedup or 0.0) <= 1.0):
        return recipe
    found: Recipe = best[0].schedule
    return found


def _chained(first: Tuned, rest: Iterator[Tuned]) -> Iterator[Tuned]:
    yield first
    yield from rest


def _refusal(measurement: Measurement) -> str:
    """Why a tuned kernel is not kept; empty where it is."""
    if measurement.status != "ok":
        return f"the tuned kernel failed as a whole ({measurement.status}: {measurement.detail})"
    if not measurement.faster_beyond_noise:
        return f"the tuned kernel is not faster as a whole beyond noise ({measurement.speedup:.2f}x)"
    return ""


def _silence(evidence: Evidence, whole: WholeKernel) -> str:
    """Why agreeing results do not count: no output had a number, or none was changed; empty where they do."""
    outputs = len(whole.built.problem.reference)
    if len(evidence.unverifiable) < outputs or (evidence.finite and evidence.changed):
        return ""
    return f"the results are {unverifiable(evidence)}"


def _undecided(measurement: Measurement) -> bool:
    """It looks faster, but noise may be all there is to it."""
    return (measurement.speedup or 0.0) > 1.0 and not measurement.faster_beyond_noise
