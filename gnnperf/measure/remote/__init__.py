"""Packed schedules: built on one machine, verified and timed on another that has TVM's runtime alone.

Light: numpy, PyYAML, the standard library and, where candidates run, `tvm_ffi`.
"""

from gnnperf.measure.remote.measuring import measure_pack
from gnnperf.measure.remote.pack import Pack, PackedWorkload
from gnnperf.measure.remote.worker import PackLimits

__all__ = ["Pack", "PackLimits", "PackedWorkload", "measure_pack"]
