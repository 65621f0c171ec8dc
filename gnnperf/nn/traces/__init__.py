"""The cost model of scheduled tensor programs."""

from gnnperf.nn.traces.bundle import FEATURES, JUDGES, Described, TensorBundle
from gnnperf.nn.traces.model import CostModel, CostModelConfig
from gnnperf.nn.traces.numbers import NUMBERS, StatementNumbers, statement_numbers
from gnnperf.nn.traces.trees import TreeJudge, program_numbers

__all__ = [
    "FEATURES",
    "JUDGES",
    "NUMBERS",
    "CostModel",
    "CostModelConfig",
    "Described",
    "StatementNumbers",
    "TensorBundle",
    "TreeJudge",
    "program_numbers",
    "statement_numbers",
]
