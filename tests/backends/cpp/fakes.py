"""A compiler that compiles nothing and a runner that runs nothing, for benches of small nests."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from typing import Any

from nests.examples import gemm

from gnnperf.backends.cpp.trials import NestBench, NestCase
from gnnperf.errors import BuildError
from gnnperf.measure import Library, Limits, Measurement, Source
from gnnperf.measure.problem import Problem
from gnnperf.nests import LoopNest


class Workshop:
    """Both sides of a bench. `runtime_s(text)` says what a source's runtime is; None: it is wrong.

    Attributes:
        built, timed: texts of the sources, in order. limits: those of each timing. refuse: texts that do
            not compile.
    """

    def __init__(self, runtime_s: Callable[[str], float | None] | None = None) -> None:
        self.runtime_s = runtime_s or pseudo_random_runtime_s
        self.built: list[str] = []
        self.timed: list[str] = []
        self.limits: list[Limits] = []
        self.refuse: Callable[[str], bool] = lambda _: False

    def build_all(self, sources: Iterable[Source]) -> list[Any]:
        return [self._build(source) for source in sources]

    def _build(self, source: Source) -> Library | BuildError:
        self.built.append(source.text)
        if self.refuse(source.text):
            return BuildError("error: too clever")
        return Library(source.text, source.symbol, source.arguments)

    def measure(
        self, baseline: Library | None, candidate: Library, *args: Any, **options: Any
    ) -> Measurement:
        self.timed.append(candidate.path)
        self.limits.append(args[-1])
        runtime_s = self.runtime_s(candidate.path)
        if runtime_s is None:
            return Measurement("wrong_result", detail="elements differ")
        return Measurement.from_samples([runtime_s] * 6, [1.0] * 6)


def pseudo_random_runtime_s(text: str) -> float:
    """Another runtime for another text, in (0, 1]."""
    return (1 + hashlib.sha256(text.encode()).digest()[0]) / 256


def bench(workshop: Workshop, nest: LoopNest | None = None, give_up: float = math.inf) -> NestBench:
    nest = nest or gemm()
    problem = Problem({}, nest.outputs, {}, updated=nest.outputs)
    case = NestCase(nest, problem, nest.outputs, Library("", "baseline", ()))
    return NestBench(case, workshop, workshop, Limits(), give_up)
