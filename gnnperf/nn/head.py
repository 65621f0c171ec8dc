"""The head that ranks schedules: how fast is what this schedule makes of this program?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gnnperf.graph import NODE_KINDS
from gnnperf.graph.costs import COST_FIELDS
from gnnperf.nn.graph_net import CostInput
from gnnperf.nn.pooling import log_sum_exp, pool_costs
from gnnperf.nn.scaling import Standardise


@dataclass(frozen=True)
class HeadConfig:
    """Hyperparameters of the head.

    Attributes:
        width: of the hidden layers that judge the graph.
        dropout: probability there, in training only.
        numbers_width: of the hidden layers that judge the numbers alone.
        numbers_dropout: probability there.
    """

    width: int = 96
    dropout: float = 0.1
    numbers_width: int = 128
    numbers_dropout: float = 0.3


DEFAULT_HEAD = HeadConfig()
TIMED = tuple(sorted({kind for field in COST_FIELDS for kind in field.kinds}))
"""Kinds of nodes that take time: those that have costs."""


class GraphHead(nn.Module):
    """Scores scheduled programs by their graphs: gives every statement, access and loop a time from its
    node's state and costs (what computing, moving data and starting loops take), adds these times up, and
    corrects the sum by the state of the whole graph, costs pooled over all nodes, and facts about the
    schedule.

    Args:
        state_width: of the states of nodes and graphs.
        facts: numbers known of each schedule.
        width: of the hidden layers.
        dropout: probability there, in training only.
    """

    def __init__(self, state_width: int, facts: int, width: int, dropout: float) -> None:
        super().__init__()
        costs, pooled = len(COST_FIELDS), 2 * len(COST_FIELDS)
        self.is_timed = nn.Buffer(timed_kinds(), persistent=False)
        self.carried = nn.Buffer(CostInput().carried.clone(), persistent=False)
        self.pooled_scale = Standardise(pooled, limit=4.0)
        self.fact_scale = Standardise(facts, limit=4.0)
        self.node_time = perceptron(state_width + costs, width, dropout)
        self.correction = perceptron(state_width + pooled + facts, width, dropout)

    def fit_scales(self, node_kind: Tensor, node_costs: Tensor, batch: Tensor, facts: Tensor) -> None:
        """Take the statistics of the inputs; arguments as of `by_graph`."""
        self.pooled_scale.fit(self.pooled(node_kind, node_costs, batch, facts.size(0)))
        self.fact_scale.fit(facts)

    def pooled(self, node_kind: Tensor, node_costs: Tensor, batch: Tensor, graphs: int) -> Tensor:
        """f32[b, 2 C], see `pool_costs`."""
        return pool_costs(node_costs, self.carried.index_select(0, node_kind), batch, graphs)

    def standardised(self, node_kind: Tensor, node_costs: Tensor, batch: Tensor, facts: Tensor) -> Tensor:
        """Pooled costs and facts, f32[b, 2 C + facts]; an absent fact is as on average."""
        pooled = self.pooled_scale(self.pooled(node_kind, node_costs, batch, facts.size(0)))
        return torch.cat([pooled, self.fact_scale(facts).nan_to_num()], 1)

    def by_graph(
        self, nodes: Tensor, graphs: Tensor, node_kind: Tensor, batch: Tensor, numbers: Tensor
    ) -> Tensor:
        """f32[b], the higher the faster.

        Args:
            nodes, graphs: f32[n, state_width + C] and f32[b, state_width], of `GraphNet.states`.
            node_kind: i64[n], index into NODE_KINDS.
            batch: i64[n], the program of each node.
            numbers: f32[b, 2 C + facts], `standardised`.
        """
        is_timed = self.is_timed.index_select(0, node_kind)
        time = log_sum_exp(self.node_time(nodes).squeeze(1), is_timed, batch, graphs.size(0))
        corrected: Tensor = self.correction(torch.cat([graphs, numbers], 1)).squeeze(1) - time
        return corrected


class ScheduleHead(GraphHead):
    """Scores scheduled programs: among those of one program, ln(efficiency) up to a constant.

    The mean of two judges, which err differently: `GraphHead`, and a second that sees numbers and no graph:
    costs pooled over all nodes, and facts about the schedule.

    Args:
        state_width: of the encoder's states.
        facts: numbers known of each schedule (`gnnperf.schedules.recipes.fact_fields`).
        config: hyperparameters.
    """

    def __init__(self, state_width: int, facts: int, config: HeadConfig = DEFAULT_HEAD) -> None:
        super().__init__(state_width, facts, config.width, config.dropout)
        self.config = config
        self.numbers = perceptron(2 * len(COST_FIELDS) + facts, config.numbers_width, config.numbers_dropout)

    def by_numbers(self, node_kind: Tensor, node_costs: Tensor, batch: Tensor, facts: Tensor) -> Tensor:
        """What the second judge says alone, f32[b]."""
        return self.numbers(self.standardised(node_kind, node_costs, batch, facts)).squeeze(1)

    def forward(
        self,
        nodes: Tensor,
        graphs: Tensor,
        node_kind: Tensor,
        node_costs: Tensor,
        batch: Tensor,
        facts: Tensor,
    ) -> Tensor:
        """Score b scheduled programs.

        Args:
            nodes, graphs: f32[n, state_width + C] and f32[b, state_width], of `Encoder.states`.
            node_kind: i64[n], index into NODE_KINDS.
            node_costs: f32[n, C].
            batch: i64[n], the program of each node.
            facts: f32[b, facts], NaN where absent.

        Returns:
            f32[b], the higher the faster: differences between schedules of one program are in nats.
        """
        return self.judgements(nodes, graphs, node_kind, node_costs, batch, facts).mean(0)

    def judgements(
        self,
        nodes: Tensor,
        graphs: Tensor,
        node_kind: Tensor,
        node_costs: Tensor,
        batch: Tensor,
        facts: Tensor,
    ) -> Tensor:
        """f32[2, b]: what each judge says; arguments as of `forward`."""
        numbers = self.standardised(node_kind, node_costs, batch, facts)
        by_graph = self.by_graph(nodes, graphs, node_kind, batch, numbers)
        return torch.stack([by_graph, self.numbers(numbers).squeeze(1)])


def timed_kinds() -> Tensor:
    """bool[kinds], in the order of NODE_KINDS: those that take time."""
    return torch.tensor([kind in TIMED for kind in NODE_KINDS])


def perceptron(inputs: int, width: int, dropout: float) -> nn.Sequential:
    """f32[n, inputs] -> f32[n, 1], through two hidden layers."""
    return nn.Sequential(
        nn.Dropout(dropout / 3), nn.Linear(inputs, width), nn.GELU(),
        nn.Dropout(dropout), nn.Linear(width, width), nn.GELU(),
        nn.Dropout(dropout), nn.Linear(width, 1),
    )  # fmt: skip
