"""Trials of one nest: apply, build, verify, time; equal code is measured once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gnnperf.errors import BuildError, NotApplicable
from gnnperf.frontends.native import native_function
from gnnperf.measure import Compiler, Library, Limits, Measurement, Runner, Source
from gnnperf.measure.candidate import VERY_LONG_RUN_S
from gnnperf.measure.problem import Problem
from gnnperf.nests import LoopNest
from gnnperf.schedules.recipes import Recipe


@dataclass(frozen=True)
class Trial:
    """One recipe on one nest and what came of it."""

    recipe: Recipe
    measurement: Measurement
    origin: str
    """Where the recipe came from: "default", "random", "mutation", "foreign" or a neighbour's digest."""

    @property
    def runtime_s(self) -> float:
        """Median runtime; infinite where the trial failed."""
        runtime = self.measurement.runtime_s
        return runtime if self.measurement.status == "ok" and runtime is not None else float("inf")


@dataclass(frozen=True)
class NestCase:
    """A nest ready to be measured: what it must compute, and the baseline to beat. inouts: outputs that are
    read before they are written, or not wholly written. baseline_s: what the baseline takes, where that is
    too long to run it beside every candidate."""

    nest: LoopNest
    problem: Problem
    inouts: Sequence[str]
    baseline: Library
    baseline_s: float | None = None


class NestBench:
    """Measures recipes on one nest. Recipes that lower to the same code share one measurement.

    give_up: a candidate this many times slower than the best so far is not timed any further.
    """

    def __init__(
        self,
        case: NestCase,
        compiler: Compiler,
        runner: Runner,
        limits: Limits,
        give_up: float = math.inf,
    ) -> None:
        self.case, self.compiler, self.runner, self.limits = case, compiler, runner, limits
        self._give_up = give_up
        self._best_speedup = 0.0
        self._baseline_s = case.baseline_s
        self._measured: dict[str, Measurement] = {}
        self._prepared: dict[Recipe, Source | Measurement] = {}

    def remember(self, trials: Iterable[Trial]) -> None:
        """Take over what was measured before: recipes that lower to the same code need not be measured."""
        for trial in trials:
            source = self.prepare(trial.recipe)
            if isinstance(source, Source):
                self._keep(source, trial.measurement)

    def run(self, recipes: Sequence[Recipe], origin: str) -> Iterator[Trial]:
        """One trial per recipe, in order: all are compiled now, each is measured when it is asked for."""
        measurements = self.measure([self.prepare(recipe) for recipe in recipes])
        return (Trial(r, m, origin) for r, m in zip(recipes, measurements, strict=True))

    def distinct(self, recipes: Iterable[Recipe]) -> Iterator[Recipe]:
        """Those that lower to code which was not measured, each code once."""
        known = set(self._measured)
        for recipe in recipes:
            source = self.prepare(recipe)
            if isinstance(source, Source) and (key := digest_of(source)) not in known:
                known.add(key)
                yield recipe

    def prepare(self, recipe: Recipe) -> Source | Measurement:
        """The candidate's source, or the measurement that says why there is none."""
        if recipe not in self._prepared:
            try:
                self._prepared[recipe] = source_of(recipe, self.case.nest)
            except NotApplicable as error:
                self._prepared[recipe] = Measurement("not_applicable", detail=str(error))
        return self._prepared[recipe]

    def measure(self, prepared: Sequence[Source | Measurement]) -> Iterator[Measurement]:
        """Compile at once what `prepare` returned, then measure one after another, as asked for."""
        new = {p.text: p for p in prepared if isinstance(p, Source) and digest_of(p) not in self._measured}
        libraries = dict(zip(new, self.compiler.build_all(new.values()), strict=True))
        return (p if isinstance(p, Measurement) else self._measure(p, libraries) for p in prepared)

    def _measure(self, source: Source, libraries: Mapping[str, Library | BuildError]) -> Measurement:
        key = digest_of(source)
        if key not in self._measured:
            library = libraries[source.text]
            if isinstance(library, BuildError):
                self._keep(source, Measurement("build_error", detail=str(library)))
            else:
                self._keep(source, self._time(library))
        return self._measured[key]

    def _time(self, library: Library) -> Measurement:
        case, problem, limits = self.case, self.case.problem, self.limits
        if self._best_speedup > 0:
            limits = replace(limits, cutoff=min(limits.cutoff, self._give_up / self._best_speedup))
        measured = self.runner.measure(
            case.baseline if self._baseline_s is None else None, library, problem.inputs,
            problem.outputs, case.inouts, problem.reference, limits,
            reduction_length=problem.reduction_length, baseline_s=self._baseline_s, updated=problem.updated,
            quantised=problem.quantised,
        )  # fmt: skip
        if (measured.baseline_s or 0.0) > VERY_LONG_RUN_S:
            self._baseline_s = measured.baseline_s
        return measured

    def _keep(self, source: Source, measured: Measurement) -> None:
        self._measured[digest_of(source)] = measured
        self._best_speedup = max(self._best_speedup, measured.speedup or 0.0)


SYMBOL = "gnnperf_nest"


def source_of(recipe: Recipe, nest: LoopNest) -> Source:
    """The C++ of a recipe on a nest. Its functions have names derived from its text, so that many may share a
    library. Raises NotApplicable."""
    function = native_function(recipe, nest, SYMBOL)
    symbol = f"{SYMBOL}_{hashlib.sha256(function.source.encode()).hexdigest()[:16]}"
    return Source.of(replace(function, symbol=symbol, source=function.source.replace(SYMBOL, symbol)))


def digest_of(source: Source) -> str:
    return hashlib.sha256(source.text.encode()).hexdigest()
