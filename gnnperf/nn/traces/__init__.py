"""The cost model of scheduled tensor programs, and the bundle it is shipped in."""

from gnnperf.nn.traces.bundle import FEATURES, Described, TensorBundle, load_tensor_bundle, save_tensor_bundle
from gnnperf.nn.traces.model import CostModel, CostModelConfig
from gnnperf.nn.traces.numbers import NUMBERS, StatementNumbers, statement_numbers
from gnnperf.nn.traces.trees import TreeJudge, program_numbers

__all__ = [
    "FEATURES",
    "NUMBERS",
    "CostModel",
    "CostModelConfig",
    "Described",
    "StatementNumbers",
    "TensorBundle",
    "TreeJudge",
    "load_tensor_bundle",
    "program_numbers",
    "save_tensor_bundle",
    "statement_numbers",
]
