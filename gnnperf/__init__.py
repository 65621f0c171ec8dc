"""gnnperf: find tuned kernels like yours, transfer their schedules, measure, keep the winner."""

__version__ = "0.1.0"
