"""DaCe programs: loading, normal form, nests with their inputs, baselines, splicing."""

from gnnperf.frontends.dace.capture import capture_inputs
from gnnperf.frontends.dace.codegen import dace_source
from gnnperf.frontends.dace.loader import DaceKernel, kernel_of, load_kernel
from gnnperf.frontends.dace.units import Unit

__all__ = ["DaceKernel", "Unit", "capture_inputs", "dace_source", "kernel_of", "load_kernel"]
