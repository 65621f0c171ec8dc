"""Retrieval for TVM kernels: traces of like workloads, transferred, ranked by the cost model, measured."""

from gnnperf.retrieval.tensor.candidates import TraceCandidate
from gnnperf.retrieval.tensor.proposals import propose
from gnnperf.retrieval.tensor.query import TaskQuery
from gnnperf.retrieval.tensor.ranking import CostModel, ranked
from gnnperf.retrieval.tensor.transfer import TensorOptions, TensorTransfer

__all__ = [
    "CostModel",
    "TaskQuery",
    "TensorOptions",
    "TensorTransfer",
    "TraceCandidate",
    "propose",
    "ranked",
]
