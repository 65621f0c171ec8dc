"""The regression head: runtime of a workload on a GPU, physics first, with intervals."""

from gnnperf.nn.runtime.columns import Columns, device_columns, workload_columns
from gnnperf.nn.runtime.head import Intervals, RuntimeHead
from gnnperf.nn.runtime.model import RuntimeCalibration, RuntimeModel
from gnnperf.nn.runtime.physics import roofline_s

__all__ = [
    "Columns",
    "Intervals",
    "RuntimeCalibration",
    "RuntimeHead",
    "RuntimeModel",
    "device_columns",
    "roofline_s",
    "workload_columns",
]
