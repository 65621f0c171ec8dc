"""Generated inputs that a kernel can work with: random matrices make solvers overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gnnperf.frontends.dace.codegen import compiled
from gnnperf.frontends.dace.inputs import make_dominant
from gnnperf.measure import Compiler, Limits, Runner
from gnnperf.nests.ir import Loop, walk

if TYPE_CHECKING:
    from gnnperf.frontends.dace.loader import DaceKernel

LARGEST = 1e15
"""Results beyond this come from a recurrence that amplifies rounding errors."""


def settle_inputs(kernel: DaceKernel, compiler: Compiler, runner: Runner, limits: Limits) -> bool:
    """Where random square matrices make a kernel with recurrences overflow, make them symmetric and
    diagonally dominant. Changes `kernel.data`; True if it did. Matrices that the user gave stay."""
    matrices = [
        kernel.data[n] for n in sorted(kernel.generated)
        if np.ndim(kernel.data[n]) == 2 and kernel.data[n].dtype.kind == "f"
        and kernel.data[n].shape[0] == kernel.data[n].shape[1]
    ]  # fmt: skip
    if not matrices or not _has_recurrence(kernel):
        return False
    library = compiled(kernel.simplified, f"{kernel.name}_simplify", compiler)
    results = runner.reference(library, kernel.data, kernel.outputs, kernel.inouts, limits)
    values = [r for r in results.values() if r.dtype.kind == "f"]
    if all(np.isfinite(v).all() and (np.abs(v) < LARGEST).all() for v in values):
        return False
    for matrix in matrices:
        make_dominant(matrix)
    return True


def _has_recurrence(kernel: DaceKernel) -> bool:
    return any(
        unit.in_loop or any(isinstance(n, Loop) and not n.independent for n in walk(unit.nest.body))
        for unit in kernel.units
    ) or bool(kernel.skipped)
