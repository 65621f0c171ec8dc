"""The cost model of scheduled tensor programs: which schedule of a workload runs fastest?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gnnperf.errors import InputError
from gnnperf.graph import GraphBatch
from gnnperf.nn.encoder import Encoder
from gnnperf.nn.graph_net import GraphNet
from gnnperf.nn.head import GraphHead
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

    width: int = 64
    layers: int = 2
    heads: int = 4
    head_width: int = 96
    statement_width: int = 128
    dropout: float = 0.1
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
    """Predicts -ln(runtime) of scheduled programs, up to a constant of the workload, twice.

    Two judges err differently, and are trained each on its own. The first passes messages
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
        """f32[2, b], what each judge predicts: of one workload, the highest is to be tried first.

        Args:
            graphs: b of them, with n nodes.
            node_costs: f32[n, C], `GraphCosts.node_rows`.
            numbers: of the statements among the nodes.
        """
        by_statements = self.by_statements(numbers, len(graphs.graph_features))
        return torch.stack([self.by_graph(graphs, node_costs), by_statements])


_WITH_FACTS = ("fact_scale.mean", "fact_scale.deviation", "correction.1.weight")
"""Tensors of `GraphHead` whose last columns are facts."""


class GraphJudge(nn.Module):
    """The network that judges nests, without facts about their recipes: it may begin as that one."""

    def __init__(self, config: CostModelConfig, lean: bool = False) -> None:
        super().__init__()
        self.net = GraphNet(config.width, config.layers, config.heads, config.dropout, lean)
        self.head = GraphHead(config.width, 0, config.head_width, config.head_dropout)

    def forward(self, graphs: GraphBatch, node_costs: Tensor) -> Tensor:
        """f32[b], of node costs f32[n, C]."""
        nodes, states = self.net.states(*graphs, node_costs)
        numbers = self.head.standardised(graphs.node_kind, node_costs, graphs.batch, _no_facts(states))
        return self.head.by_graph(nodes, states, graphs.node_kind, graphs.batch, numbers)

    def fit_scales(self, graphs: GraphBatch, node_costs: Tensor) -> None:
        """Take the statistics of the inputs from what is learned from."""
        self.net.fit_scales(graphs, node_costs)
        self.head.fit_scales(graphs.node_kind, node_costs, graphs.batch, _no_facts(graphs.graph_features))

    def begin_as(self, encoder: Encoder, head: GraphHead) -> None:
        """Take over weights and input scales; facts about recipes, which traces have none of, are as on
        average. Raises InputError where the networks are of other sizes."""
        for mine, other in ((self.net, encoder.state_dict()), (self.head, head.state_dict())):
            for name, value in mine.state_dict().items():
                given = other[name][..., : value.size(-1)] if name in _WITH_FACTS else other[name]
                if given.shape != value.shape:
                    raise InputError(
                        f"expected a network to begin as with {name} of shape {list(value.shape)}, got "
                        f"{list(given.shape)}; give the judge its width, layers and heads"
                    )
                value.copy_(given)


def _no_facts(like: Tensor) -> Tensor:
    return like.new_zeros(like.size(0), 0)


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
