"""Trials of one nest: apply, build, verify, time; equal code is measured once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from numpy.typing import NDArray

from gnnperf.errors import BuildError, NotApplicable
from gnnperf.measure import Library, Limits, Measurement, Source
from gnnperf.nests import LoopNest
from gnnperf.schedules import Recipe, apply, emit


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
    """A nest ready to be measured: inputs, the truth, and the baseline to beat."""

    nest: LoopNest
    data: Mapping[str, Any]
    outputs: Sequence[str]
    inouts: Sequence[str]
    reduction_length: int
    reference: Mapping[str, NDArray[Any]]
    baseline: Library


class Builder(Protocol):
    """`gnnperf.measure.Compiler`, or the replay of one."""

    def build_all(self, sources: Iterable[Source]) -> list[Any]: ...


class Timer(Protocol):
    """`gnnperf.measure.Runner`, or the replay of one."""

    def measure(
        self, baseline: Library | None, candidate: Library, *args: Any, **options: Any
    ) -> Measurement: ...


class Bench:
    """Measures recipes on one nest. Recipes that lower to the same code share one measurement."""

    def __init__(self, case: NestCase, compiler: Builder, runner: Timer, limits: Limits) -> None:
        self.case, self.compiler, self.runner, self.limits = case, compiler, runner, limits
        self._measured: dict[str, Measurement] = {}

    def run(
        self, recipes: Sequence[Recipe], origin: str, stop: Callable[[], bool] = lambda: False
    ) -> list[Trial]:
        """One trial per recipe, in order; ends early, after a whole trial, once `stop()` holds."""
        measurements = self.measure([self.prepare(recipe) for recipe in recipes])
        trials: list[Trial] = []
        for recipe in recipes:
            if stop():
                break
            trials.append(Trial(recipe, next(measurements), origin))
        return trials

    def prepare(self, recipe: Recipe) -> Source | Measurement:
        """The candidate's source, or the measurement that says why there is none."""
        try:
            return source_of(recipe, self.case.nest)
        except NotApplicable as error:
            return Measurement("not_applicable", detail=str(error))

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
                self._measured[key] = Measurement("build_error", detail=str(library))
            else:
                case = self.case
                self._measured[key] = self.runner.measure(
                    case.baseline, library, case.data, case.outputs, case.inouts, case.reference, self.limits,
                    reduction_length=case.reduction_length,
                )  # fmt: skip
        return self._measured[key]


SYMBOL = "gnnperf_nest"


def source_of(recipe: Recipe, nest: LoopNest) -> Source:
    """The C++ of a recipe on a nest, under a symbol derived from its text. Raises NotApplicable."""
    function = emit(apply(recipe, nest), SYMBOL)
    symbol = f"{SYMBOL}_{hashlib.sha256(function.source.encode()).hexdigest()[:16]}"
    return Source.of(
        replace(function, symbol=symbol, source=function.source.replace(f" {SYMBOL}(", f" {symbol}("))
    )


def digest_of(source: Source) -> str:
    return hashlib.sha256(source.text.encode()).hexdigest()
