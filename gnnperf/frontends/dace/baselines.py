"""What the user would have got anyway: DaCe's own optimisation of a kernel or of one unit."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import dace
from numpy.typing import NDArray

from gnnperf.errors import BuildError, MeasureError
from gnnperf.frontends.dace.codegen import dace_source, first_line
from gnnperf.frontends.dace.quiet import quiet_dace
from gnnperf.measure import Compiler, Library, Runner, Source, verify

BaselineName = Literal["auto", "simplify"]


@dataclass(frozen=True)
class Baseline:
    """`name` is what was built; `reason` says why it is not what was asked for."""

    library: Library
    name: BaselineName
    reason: str | None = None


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
    runner: Runner | None = None,
    data: Mapping[str, Any] | None = None,
    reference: Mapping[str, NDArray[Any]] | None = None,
    inouts: tuple[str, ...] = (),
    reduction_length: int = 1,
) -> Baseline:
    """The baseline of a kernel (`kernel.simplified`) or of a unit (`unit.cutout()`).

    "auto" becomes "simplify", with the reason, where DaCe cannot optimise or compile it, or, when
    `runner`, `data` and a `reference` (outputs of "simplify") are given, where its results are wrong.
    """
    reason = None
    if wanted == "auto":
        try:
            library = compiler.build(auto_source(sdfg, f"{name}_auto"))
            if runner is not None and data is not None and reference is not None:
                _check(library, runner, data, reference, inouts, reduction_length)
            return Baseline(library, "auto")
        except (BuildError, MeasureError) as error:
            reason = str(error)
    return Baseline(compiler.build(dace_source(sdfg, f"{name}_simplify")), "simplify", reason)


def _check(
    library: Library,
    runner: Runner,
    data: Mapping[str, Any],
    reference: Mapping[str, NDArray[Any]],
    inouts: tuple[str, ...],
    reduction_length: int,
) -> None:
    found = runner.reference(library, data, tuple(reference), inouts)
    wrong = verify(reference, found, reduction_length)
    if wrong is not None:
        raise BuildError(f"auto_optimize changes the results: {wrong}")
