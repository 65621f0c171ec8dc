"""From a frontend's unit, or a whole kernel, to something that can be measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from gnnperf.backends.cpp.trials import NestCase
from gnnperf.errors import BuildError, MeasureError
from gnnperf.frontends.dace import BaselineName, DaceKernel, Unit, build_baseline, capture_inputs, dace_source
from gnnperf.graph import ProgramGraph
from gnnperf.measure import Compiler, Library, Limits, Measurement, Runner
from gnnperf.nests import nest_graph
from gnnperf.nests.analysis import is_data_dependent
from gnnperf.nests.trip_counts import measured_trip_counts

SLOWEST = 30.0
"""A candidate that takes this many times its baseline, and two seconds, counts as hung."""
SINGLE_RUN = Limits(timeout_s=120.0, budget_s=0.0, min_samples=3, cutoff=float("inf"))


def unit_graph(unit: Unit) -> ProgramGraph:
    """The program graph of a unit; loops whose bounds depend on data take their measured mean extent."""
    return nest_graph(unit.nest, measured_trip_counts(unit.nest, unit.data))


def capture_for_graphs(kernel: DaceKernel, compiler: Compiler, runner: Runner) -> None:
    """Run the kernel for the inputs of its nests, where their graphs need any: data-dependent loops."""
    loops = (loop for unit in kernel.units for loop in unit.nest.loops())
    if any(map(is_data_dependent, loops)):
        capture_inputs(kernel, compiler, runner)


@dataclass(frozen=True)
class UnitCase:
    """A unit with its compiled baseline and the results that are right."""

    case: NestCase
    baseline_name: str
    baseline_note: str
    baseline_s: float
    limits: Limits

    @staticmethod
    def prepare(unit: Unit, wanted: BaselineName, compiler: Compiler, runner: Runner) -> UnitCase:
        """Compile the unit's DaCe code, unscheduled and as the baseline, and run both.

        Raises MeasureError or BuildError where the unit cannot run alone.
        """
        cutout = unit.cutout()
        inouts = tuple(unit.inouts)
        length = unit.reduction_length
        baseline = build_baseline(
            cutout, unit.name, wanted, compiler, runner, unit.data, unit.outputs, inouts, length
        )
        baseline_s = _seconds(runner, baseline.library, unit.data, unit.outputs, inouts)
        case = NestCase(
            unit.nest, unit.data, unit.outputs, inouts, baseline.reduction_length, baseline.reference,
            baseline.library,
        )  # fmt: skip
        limits = Limits(timeout_s=max(2.0, SLOWEST * baseline_s))
        return UnitCase(case, f"dace-{baseline.name}", baseline.reason or "", baseline_s, limits)


@dataclass(frozen=True)
class WholeKernel:
    """A kernel with its baseline, and the results of the unoptimised program that all must match."""

    kernel: DaceKernel
    library: Library
    reference: Mapping[str, NDArray[Any]]
    reduction_length: int
    baseline_name: str
    baseline_note: str
    baseline_s: float
    baseline_interval_s: tuple[float, float]

    @staticmethod
    def prepare(kernel: DaceKernel, wanted: BaselineName, compiler: Compiler, runner: Runner) -> WholeKernel:
        """Compile and time the baseline. Raises GnnperfError where even plain DaCe code does not run."""
        inouts = tuple(kernel.inouts)
        limits = Limits(timeout_s=300.0)
        try:
            baseline = build_baseline(
                kernel.simplified, kernel.name, wanted, compiler, runner, kernel.data, kernel.outputs, inouts,
                reduction_length(kernel), limits,
            )  # fmt: skip
        except BuildError as error:
            raise BuildError(f"what DaCe makes of the kernel does not compile: {error}") from None
        except MeasureError as error:
            raise MeasureError(
                f"the kernel fails before anything is tuned ({error}); check its subscripts, inputs and sizes"
            ) from None
        timed = runner.measure(
            None, baseline.library, kernel.data, kernel.outputs, inouts, None, replace(limits, budget_s=0.3)
        )
        if timed.status != "ok" or timed.runtime_s is None or timed.interval_s is None:
            raise MeasureError(f"the baseline does not run: {timed.status}, {timed.detail}")
        return WholeKernel(
            kernel,
            baseline.library,
            baseline.reference,
            baseline.reduction_length,
            f"dace-{baseline.name}",
            baseline.reason or "",
            timed.runtime_s,
            timed.interval_s,
        )

    def measure(self, sdfg: Any, compiler: Compiler, runner: Runner, budget_s: float = 1.0) -> Measurement:
        """Verify a tuned SDFG against the reference and time it beside the baseline, in several
        processes. Raises BuildError where it does not compile."""
        tuned = compiler.build(dace_source(sdfg, f"{self.kernel.name}_tuned"))
        limits = Limits(
            timeout_s=max(5.0, SLOWEST * self.baseline_s), budget_s=budget_s, processes=3, cutoff=float("inf")
        )
        return runner.measure(
            self.library,
            tuned,
            self.kernel.data,
            self.kernel.outputs,
            tuple(self.kernel.inouts),
            self.reference,
            limits,
            reduction_length=self.reduction_length,
        )


def reduction_length(kernel: DaceKernel) -> int:
    """Terms of the longest chain of roundings behind an output: units feed one another."""
    return max(1, sum(unit.reduction_length for unit in kernel.units))


def _seconds(
    runner: Runner, library: Library, data: Mapping[str, Any], outputs: list[str], inouts: tuple[str, ...]
) -> float:
    timed = runner.measure(None, library, data, outputs, inouts, None, SINGLE_RUN)
    if timed.status != "ok" or timed.runtime_s is None:
        raise MeasureError(f"the baseline does not run alone: {timed.status}, {timed.detail}")
    return timed.runtime_s
