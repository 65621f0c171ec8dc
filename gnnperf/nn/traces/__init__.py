"""The cost model of scheduled tensor programs."""

from gnnperf.nn.traces.bundle import FEATURES, JUDGES, Described, TensorBundle
from gnnperf.nn.traces.model import CostModel, CostModelConfig
from gnnperf.nn.traces.numbers import NUMBERS, BatchNumbers, StatementNumbers, batch_numbers
from gnnperf.nn.traces.trees import TreeJudge, program_numbers

__all__ = [
    "FEATURES",
    "JUDGES",
    "NUMBERS",
    "BatchNumbers",
    "CostModel",
    "CostModelConfig",
    "Described",
    "StatementNumbers",
    "TensorBundle",
    "TreeJudge",
    "batch_numbers",
    "program_numbers",
]
