"""The cost model of scheduled tensor programs: which schedule of a workload runs fastest?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gnnperf.errors import InputError
from gnnperf.graph import GraphBatch
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn.graph_net import CostInput, GraphNet
from gnnperf.nn.head import perceptron, timed_kinds
from gnnperf.nn.pooling import log_sum_exp
from gnnperf.nn.scaling import Standardise
from gnnperf.nn.traces.numbers import NUMBERS, StatementNumbers


@dataclass(frozen=True)
class CostModelConfig:
    """Hyperparameters of the cost model.

    Attributes:
        width: of node states of the judge of graphs. layers: of its message passing. heads: of attention,
            which divide the width. head_width: of the hidden layers that read the states.
        statement_width: of the hidden layers of the judge of statements.
        dropout, head_dropout, statement_dropout: probabilities in message passing, in the layers that read
            the states, and in the judge of statements, in training only.
        threads: that share parallel loops.
    """

    width: int = 32
    layers: int = 2
    heads: int = 4
    head_width: int = 64
    statement_width: int = 128
    dropout: float = 0.05
    head_dropout: float = 0.1
    statement_dropout: float = 0.1
    threads: int = 2

    def __post_init__(self) -> None:
        for name in ("width", "layers", "heads", "head_width", "statement_width", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"expected {name} of at least 1, got {name}={getattr(self, name)}")
        if self.width % self.heads:
            raise InputError(f"expected heads that divide width={self.width}, got heads={self.heads}")


DEFAULT_COST_MODEL = CostModelConfig()


class CostModel(nn.Module):
    """Predicts -ln(runtime) of scheduled programs, up to a constant of the workload.

    The mean of two judges, which err differently and are trained each on its own. The first passes messages
    over the scheduled graph, whose nodes say what they cost. The second sees statements alone (see
    `gnnperf.nn.traces.numbers`), predicts the logarithm of the time of each, and adds the times up.

    Args:
        config: hyperparameters.
        lean: the judge of graphs as of `GraphNet`: plain tensors, for inference.
    """

    def __init__(self, config: CostModelConfig = DEFAULT_COST_MODEL, lean: bool = False) -> None:
        super().__init__()
        self.config = config
        self.by_graph = GraphJudge(config, lean)
        self.by_statements = StatementJudge(config)

    def forward(self, graphs: GraphBatch, node_costs: Tensor, numbers: StatementNumbers) -> Tensor:
        """f32[b]: the highest first is the order to try schedules of one workload in.

        Args:
            graphs: b of them, with n nodes.
            node_costs: f32[n, C], `GraphCosts.node_rows`.
            numbers: of the statements among the nodes.
        """
        return self.judgements(graphs, node_costs, numbers).mean(0)

    def judgements(self, graphs: GraphBatch, node_costs: Tensor, numbers: StatementNumbers) -> Tensor:
        """f32[2, b]: what each judge predicts."""
        by_statements = self.by_statements(numbers, len(graphs.graph_features))
        return torch.stack([self.by_graph(graphs, node_costs), by_statements])


class GraphJudge(GraphNet):
    """Message passing over the scheduled graph; every statement, access and loop is given a time from its
    node's state and costs, these are added up, and the attention readout of the graph corrects the sum, as
    `gnnperf.nn.ScheduleHead` does. Messages tell of the structure alone: with costs in them, too, schedules
    of other workloads are ranked worse."""

    def __init__(self, config: CostModelConfig, lean: bool = False) -> None:
        width = config.width
        super().__init__(width, config.layers, config.heads, config.dropout, limit=4.0, lean=lean)
        self.costs = CostInput(limit=4.0)
        self.is_timed = nn.Buffer(timed_kinds(), persistent=False)
        self.node_time = perceptron(width + len(COST_FIELDS), config.head_width, config.head_dropout)
        self.correction = perceptron(width, config.head_width, config.head_dropout)

    def forward(self, graphs: GraphBatch, node_costs: Tensor) -> Tensor:
        """f32[b], of node costs f32[n, C]."""
        kind, features, *edges, graph_features, ptr, batch = graphs
        nodes = self.node_states(kind, features, *edges)
        states = self.readout_states(nodes, graph_features, ptr, batch)
        times = self.node_time(torch.cat([nodes, self.costs(kind, node_costs)], 1)).squeeze(1)
        time = log_sum_exp(times, self.is_timed.index_select(0, kind), batch, len(states))
        corrected: Tensor = self.correction(states).squeeze(1) - time
        return corrected

    def fit_scales(self, graphs: GraphBatch, node_costs: Tensor) -> None:
        """Take the statistics of the inputs from what is learned from."""
        self.fit_graph_scales(graphs)
        self.costs.fit(graphs.node_kind, node_costs)


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
        times = self.time(self.scale(numbers.rows)).squeeze(1)
        return -log_sum_exp(times, torch.ones_like(times, dtype=torch.bool), numbers.graph, graphs)
