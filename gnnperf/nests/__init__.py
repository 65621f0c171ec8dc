"""The loop-nest IR, its normal form, and the program graph of a nest."""

from gnnperf.nests.fusion import fuse_outermost
from gnnperf.nests.ir import (
    Annotation,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
)  # fmt: skip
from gnnperf.nests.normalise import normalise
from gnnperf.nests.partition import partition
from gnnperf.nests.to_graph import nest_graph

__all__ = [
    "Annotation", "Buffer", "Const", "Expr", "Load", "Loop", "LoopNest", "Node", "Op", "Statement",
    "Symbol", "fuse_outermost",
    "nest_graph", "normalise", "partition",
]  # fmt: skip
