"""Tensor operators by kind and parameters: what corpora of TVM schedules are measured on."""

from gnnperf.frontends.tvm.workloads.workload import KINDS, TvmWorkload, read_workloads

__all__ = ["KINDS", "TvmWorkload", "read_workloads"]
