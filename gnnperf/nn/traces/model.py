"""The cost model of scheduled tensor programs: which schedule of a workload runs fastest?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gnnperf.errors import InputError
from gnnperf.graph import GraphBatch
from gnnperf.nn.graph_net import GraphNet
from gnnperf.nn.lean import segment_softmax, segment_sum
from gnnperf.nn.scaling import Standardise
from gnnperf.nn.traces.numbers import NUMBERS, StatementNumbers


@dataclass(frozen=True)
class CostModelConfig:
    """Hyperparameters of the cost model.

    Attributes:
        width: of node states of the judge of graphs. layers: of its message passing. heads: of attention,
            which divide the width.
        statement_width: of the hidden layers of the judge of statements.
        dropout, statement_dropout: probabilities in either, in training only.
        threads: that share parallel loops.
    """

    width: int = 32
    layers: int = 2
    heads: int = 4
    statement_width: int = 128
    dropout: float = 0.05
    statement_dropout: float = 0.1
    threads: int = 2

    def __post_init__(self) -> None:
        for name in ("width", "layers", "heads", "statement_width", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"expected {name} of at least 1, got {name}={getattr(self, name)}")
        if self.width % self.heads:
            raise InputError(f"expected heads that divide width={self.width}, got heads={self.heads}")


DEFAULT_COST_MODEL = CostModelConfig()


class CostModel(nn.Module):
    """Predicts -ln(runtime) of scheduled programs, up to a constant of the workload.

    The mean of two judges, which err differently and are trained each on its own. The first passes messages
    over the scheduled graph. The second knows of every statement what it costs a processor (see
    `gnnperf.nn.traces.numbers`), predicts the logarithm of its time, and adds the times up.

    Args:
        config: hyperparameters.
        lean: the judge of graphs as of `GraphNet`: plain tensors, for inference.
    """

    def __init__(self, config: CostModelConfig = DEFAULT_COST_MODEL, lean: bool = False) -> None:
        super().__init__()
        self.config = config
        self.by_graph = GraphJudge(config, lean)
        self.by_statements = StatementJudge(config)

    def forward(self, graphs: GraphBatch, numbers: StatementNumbers) -> Tensor:
        """f32[b]: the highest first is the order to try schedules of one workload in."""
        return self.judgements(graphs, numbers).mean(0)

    def judgements(self, graphs: GraphBatch, numbers: StatementNumbers) -> Tensor:
        """f32[2, b]: what each judge predicts."""
        return torch.stack([self.by_graph(graphs), self.by_statements(numbers, len(graphs.graph_features))])

    def fit_scales(self, graphs: GraphBatch, numbers: StatementNumbers) -> None:
        """Take the statistics of the inputs from what is learned from."""
        self.by_graph.fit_graph_scales(graphs)
        self.by_statements.scale.fit(numbers.rows)


class GraphJudge(GraphNet):
    """Message passing over the scheduled graph, attention readout, and a perceptron."""

    def __init__(self, config: CostModelConfig, lean: bool = False) -> None:
        width = config.width
        super().__init__(width, config.layers, config.heads, config.dropout, limit=4.0, lean=lean)
        self.score = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, graphs: GraphBatch) -> Tensor:
        """f32[b]."""
        found: Tensor = self.score(self.graph_states(*graphs)).squeeze(1)
        return found


class StatementJudge(nn.Module):
    """ln(time) of each statement by a perceptron on its numbers; the graph's is that of the sum."""

    def __init__(self, config: CostModelConfig) -> None:
        super().__init__()
        width, dropout = config.statement_width, config.statement_dropout
        self.scale = Standardise(len(NUMBERS), limit=4.0)
        self.time = nn.Sequential(
            nn.Linear(len(NUMBERS), width), nn.GELU(), nn.Dropout(dropout),
            nn.Linear(width, width), nn.GELU(), nn.Dropout(dropout),
            nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, numbers: StatementNumbers, graphs: int) -> Tensor:
        """f32[graphs]."""
        log_time = self.time(self.scale(numbers.rows))
        # ln of a sum of exponentials, through the weights of their softmax: nothing overflows.
        weights = segment_softmax(log_time, numbers.graph, graphs).clamp_min(1e-12)
        return -segment_sum(weights * (log_time - weights.log()), numbers.graph, graphs).squeeze(1)
