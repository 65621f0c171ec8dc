"""Operators of tensor frameworks as loop nests and program graphs."""

from gnnperf.frontends.operators.linear_algebra import Convolution, FusedAttention, MatMul
from gnnperf.frontends.operators.operator import Epilogue, Operator
from gnnperf.frontends.operators.pointwise import Elementwise, Embedding
from gnnperf.frontends.operators.rows import LayerNorm, Pooling, Reduction, Softmax
from gnnperf.frontends.operators.spec import is_operator, parse_operator, parse_operators, sizes_of
from gnnperf.frontends.operators.torch_models import CapturedModel, load_model

__all__ = [
    "CapturedModel",
    "Convolution",
    "Elementwise",
    "Embedding",
    "Epilogue",
    "FusedAttention",
    "LayerNorm",
    "MatMul",
    "Operator",
    "Pooling",
    "Reduction",
    "Softmax",
    "is_operator",
    "load_model",
    "parse_operator",
    "parse_operators",
    "sizes_of",
]
