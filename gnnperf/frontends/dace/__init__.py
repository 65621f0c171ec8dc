"""DaCe programs: loading, normal form, nests with their inputs, baselines, splicing."""

from gnnperf.frontends.dace.baselines import (
    Baseline,
    BaselineName,
    auto_optimised,
    auto_source,
    build_baseline,
)
from gnnperf.frontends.dace.capture import capture_inputs
from gnnperf.frontends.dace.codegen import dace_source
from gnnperf.frontends.dace.loader import DaceKernel, kernel_of, load_kernel
from gnnperf.frontends.dace.parts import Skipped
from gnnperf.frontends.dace.splice import splice
from gnnperf.frontends.dace.units import Unit

__all__ = [
    "Baseline",
    "BaselineName",
    "DaceKernel",
    "Skipped",
    "Unit",
    "auto_optimised",
    "auto_source",
    "build_baseline",
    "capture_inputs",
    "dace_source",
    "kernel_of",
    "load_kernel",
    "splice",
]
