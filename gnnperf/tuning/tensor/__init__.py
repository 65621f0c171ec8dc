"""Measuring schedules of TVM workloads, and the corpus of them."""

from gnnperf.tuning.tensor.bench import Bench
from gnnperf.tuning.tensor.collect import TensorCollector
from gnnperf.tuning.tensor.kernel import Kernel, build_kernel
from gnnperf.tuning.tensor.log import TensorLog
from gnnperf.tuning.tensor.outcome import BenchLimits, Outcome
from gnnperf.tuning.tensor.settings import TensorConfig

__all__ = [
    "Bench",
    "BenchLimits",
    "Kernel",
    "Outcome",
    "TensorCollector",
    "TensorConfig",
    "TensorLog",
    "build_kernel",
]
