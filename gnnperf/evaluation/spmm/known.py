"""The best known schedules of sparse times dense, and which of them is best on a matrix."""

from __future__ import annotations

from dataclasses import replace

from gnnperf.backends.cpp.trials import Bench, NestCase
from gnnperf.errors import MeasureError
from gnnperf.evaluation.cases import Case
from gnnperf.frontends.dace import load_kernel
from gnnperf.measure import Compiler, Library, Limits, Measurement, Runner
from gnnperf.schedules.recipes import Recipe

_ROWS = Recipe(order="rowtile", register_p=16, omp_schedule="balanced")

KNOWN = (
    # A row of Y stays in registers; what the lookahead is worth depends on where X is.
    replace(_ROWS, unroll=4),
    replace(_ROWS, prefetch=12),
    replace(_ROWS, prefetch=32),
    replace(_ROWS, prefetch=64),
    replace(_ROWS, prefetch=96),
    # Y goes past the caches.
    replace(_ROWS, prefetch=64, nontemporal=True),
    replace(_ROWS, prefetch=128, nontemporal=True),
    # Each thread has columns of its own: its share of X is smaller.
    replace(_ROWS, prefetch=12, tile_p=32),
    replace(_ROWS, prefetch=12, tile_p=64),
    # Rows of very different lengths.
    replace(_ROWS, prefetch=32, omp_schedule="dynamic", chunk=64),
)
LIMITS = Limits(timeout_s=30.0, budget_s=0.3)


def best_known(
    case: Case, baseline: Library, compiler: Compiler, runner: Runner
) -> tuple[Recipe, Library, Measurement]:
    """The fastest of KNOWN on a product, each timed in turn with `baseline`, whose results are right."""
    kernel = load_kernel(case.program, case.symbols, case.inputs)
    (unit,) = kernel.units
    reference = runner.reference(baseline, kernel.data, kernel.outputs)
    length = unit.reduction_length
    nest = NestCase(unit.nest, kernel.data, kernel.outputs, (), length, reference, baseline)
    bench = Bench(nest, compiler, runner, LIMITS)
    trial = min(bench.run(KNOWN, "known"), key=lambda t: t.runtime_s)
    prepared = bench.prepare(trial.recipe)
    if trial.measurement.status != "ok" or isinstance(prepared, Measurement):
        raise MeasureError(f"no known schedule of {case.name} works: {trial.measurement.detail}")
    return trial.recipe, compiler.build(prepared), trial.measurement
