"""What the user would have got anyway: DaCe's own optimisation of a kernel or of one unit."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import dace
from numpy.typing import NDArray

from gnnperf.errors import BuildError, MeasureError, first_line
from gnnperf.frontends.dace.codegen import dace_source
from gnnperf.frontends.dace.quiet import quiet_dace
from gnnperf.measure import (
    Compiler,
    Library,
    Limits,
    Runner,
    Source,
    equivalent_length,
    perturbed,
    verify,
)

BaselineName = Literal["auto", "simplify"]

LONGEST_SECOND_RUN_S = 2.0
"""What takes longer is not run again to see how it amplifies rounding errors."""


@dataclass(frozen=True)
class Baseline:
    """`name` is what was built, `reason` why it is not what was asked for, `reference` what the plain
    program computes: the outputs that are right, up to the roundings of `reduction_length` terms."""

    library: Library
    name: BaselineName
    reason: str | None
    reference: Mapping[str, NDArray[Any]]
    reduction_length: int


def auto_source(sdfg: Any, name: str) -> Source:
    """Code of `auto_optimize`d DaCe. Raises BuildError where that fails."""
    return dace_source(auto_optimised(sdfg), name)


def auto_optimised(sdfg: Any) -> Any:
    """A copy after DaCe's `auto_optimize`. Raises BuildError where that fails.

    Library nodes stay portable loops: DaCe would link whatever BLAS it believes to find.
    """
    from dace.transformation.auto.auto_optimize import auto_optimize

    program = copy.deepcopy(sdfg)
    with quiet_dace():
        try:
            auto_optimize(program, dace.DeviceType.CPU, validate=False)
        except Exception as error:  # DaCe's transformations raise anything
            raise BuildError(f"auto_optimize failed: {first_line(error)}") from error
    return program


def build_baseline(
    sdfg: Any,
    name: str,
    wanted: BaselineName,
    compiler: Compiler,
    runner: Runner,
    data: Mapping[str, Any],
    outputs: Collection[str],
    inouts: tuple[str, ...] = (),
    reduction_length: int = 1,
    limits: Limits = Limits(timeout_s=60.0),  # noqa: B008  (immutable)
) -> Baseline:
    """The baseline of a kernel (`kernel.simplified`) or of a unit (`unit.cutout()`).

    "auto" becomes "simplify", with the reason, where DaCe cannot optimise or compile it, or where its
    results are wrong. Raises BuildError or MeasureError where the plain program does not compile or run.
    """
    sources, reason = [dace_source(sdfg, f"{name}_simplify")], None
    if wanted == "auto":
        try:
            sources.append(auto_source(sdfg, f"{name}_auto"))
        except BuildError as error:
            reason = str(error)
    plain, *optimised = compiler.build_all(sources)
    if isinstance(plain, BuildError):
        raise plain

    def run(library: Library, inputs: Mapping[str, Any] = data) -> dict[str, NDArray[Any]]:
        return runner.reference(library, inputs, outputs, inouts, limits)

    started = time.monotonic()
    reference = run(plain)
    if time.monotonic() - started < LONGEST_SECOND_RUN_S:
        with contextlib.suppress(MeasureError):
            reduction_length = equivalent_length(reference, run(plain, perturbed(data)), reduction_length)
    for library in optimised:
        try:
            if isinstance(library, BuildError):
                raise library
            wrong = verify(reference, run(library), reduction_length)
        except (BuildError, MeasureError) as error:
            reason = str(error)
        else:
            if wrong is None:
                return Baseline(library, "auto", None, reference, reduction_length)
            reason = f"auto_optimize changes the results: {wrong}"
    return Baseline(plain, "simplify", reason, reference, reduction_length)
