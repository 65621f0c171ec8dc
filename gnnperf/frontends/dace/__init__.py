"""DaCe programs: loading, normal form, nests with their inputs, splicing."""

from gnnperf.frontends.dace.capture import capture_inputs
from gnnperf.frontends.dace.codegen import auto_optimised, dace_source
from gnnperf.frontends.dace.loader import DaceKernel, DaceProgram, kernel_of, load_kernel
from gnnperf.frontends.dace.splice import splice
from gnnperf.frontends.dace.units import Unit

__all__ = [
    "DaceKernel",
    "DaceProgram",
    "Unit",
    "auto_optimised",
    "capture_inputs",
    "dace_source",
    "kernel_of",
    "load_kernel",
    "splice",
]
