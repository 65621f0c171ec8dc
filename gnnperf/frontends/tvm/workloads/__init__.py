"""Tensor operators by kind and parameters: what corpora of TVM schedules are measured on."""

from gnnperf.frontends.tvm.workloads.kinds import KINDS, prim_func
from gnnperf.frontends.tvm.workloads.workload import Workload, read_workloads

__all__ = ["KINDS", "Workload", "prim_func", "read_workloads"]
