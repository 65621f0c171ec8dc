"""Packed schedules: built on one machine, verified and timed on another that has TVM's runtime alone.

Light: numpy, PyYAML, the standard library and, where candidates run, `tvm_ffi`.
"""

from gnnperf.measure.packs.lines import LineLog
from gnnperf.measure.packs.measuring import PackLimits, measure_pack
from gnnperf.measure.packs.pack import Pack, PackedWorkload
from gnnperf.measure.packs.problem import random_array

__all__ = ["LineLog", "Pack", "PackLimits", "PackedWorkload", "measure_pack", "random_array"]
