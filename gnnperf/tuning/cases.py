"""From a frontend's unit, or a whole kernel, to something that can be measured."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from gnnperf.errors import MeasureError
from gnnperf.frontends.dace import DaceKernel, Unit, baseline, capture_inputs, dace_source
from gnnperf.measure import Compiler, Library, Limits, Measurement, Runner
from gnnperf.tuning.trials import NestCase

SLOWEST = 30.0
"""A candidate may take this many times its baseline (and at least two seconds) before it counts as hung."""


@dataclass(frozen=True)
class UnitCase:
    """A unit with its compiled baseline and the results that are right."""

    case: NestCase
    baseline_name: str
    baseline_note: str
    baseline_s: float
    limits: Limits

    @staticmethod
    def prepare(unit: Unit, name: str, compiler: Compiler, runner: Runner) -> UnitCase:
        """Compile the unit's DaCe code, unscheduled (the truth) and as the baseline. Raises MeasureError
        or BuildError where the unit cannot run alone."""
        cutout = unit.cutout()
        chosen = baseline(cutout, name)
        truth, base = compiler.build_all([_source(cutout, "truth"), _source(chosen.sdfg, "base")])
        ...
