"""The regression head: runtime of a workload on a GPU, physics first, with intervals."""

from gnnperf.nn.runtime.columns import Columns, device_columns, workload_columns
from gnnperf.nn.runtime.head import Intervals, RuntimeHead, load_head, save_head
from gnnperf.nn.runtime.model import Calibration, RuntimeModel
from gnnperf.nn.runtime.physics import roofline_s

__all__ = [
    "Calibration",
    "Columns",
    "Intervals",
    "RuntimeHead",
    "RuntimeModel",
    "device_columns",
    "load_head",
    "roofline_s",
    "save_head",
    "workload_columns",
]
