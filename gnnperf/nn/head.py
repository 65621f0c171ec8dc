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


class ScheduleHead(nn.Module):
    """Scores scheduled programs: among those of one program, ln(efficiency) up to a constant.

    The mean of two judges, which err differently. The first sees the graph as the encoder does: it gives
    every statement, access and loop a time from its node's state and costs (what computing, moving data and
    starting loops take), adds these times up, and corrects the sum by the state of the whole graph. The
    second sees numbers and no graph: costs pooled over all nodes, and facts about the schedule.

    Args:
        state_width: of the encoder's states.
        facts: numbers known of each schedule (`gnnperf.schedules.recipes.fact_fields`).
        config: hyperparameters.
    """

    def __init__(self, state_width: int, facts: int, config: HeadConfig = DEFAULT_HEAD) -> None:
        super().__init__()
        costs, pooled = len(COST_FIELDS), 2 * len(COST_FIELDS)
        self.config = config
        self.is_timed = nn.Buffer(timed_kinds(), persistent=False)
        self.carried = nn.Buffer(CostInput().carried.clone(), persistent=False)
        self.pooled_scale = Standardise(pooled, limit=4.0)
        self.fact_scale = Standardise(facts, limit=4.0)
        self.node_time = perceptron(state_width + costs, config.width, config.dropout)
        self.correction = perceptron(state_width + pooled + facts, config.width, config.dropout)
        self.numbers = perceptron(pooled + facts, config.numbers_width, config.numbers_dropout)

    def fit_scales(self, node_kind: Tensor, node_costs: Tensor, batch: Tensor, facts: Tensor) -> None:
        """Take the statistics of the inputs; arguments as of `forward`."""
        self.pooled_scale.fit(self.pooled(node_kind, node_costs, batch, facts.size(0)))
        self.fact_scale.fit(facts)

    def pooled(self, node_kind: Tensor, node_costs: Tensor, batch: Tensor, graphs: int) -> Tensor:
        """f32[b, 2 C], see `pool_costs`."""
        return pool_costs(node_costs, self.carried.index_select(0, node_kind), batch, graphs)

    def standardised(self, node_kind: Tensor, node_costs: Tensor, batch: Tensor, facts: Tensor) -> Tensor:
        """Pooled costs and facts, f32[b, 2 C + facts]; an absent fact is as on average."""
        pooled = self.pooled_scale(self.pooled(node_kind, node_costs, batch, facts.size(0)))
        return torch.cat([pooled, self.fact_scale(facts).nan_to_num()], 1)

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
        is_timed = self.is_timed.index_select(0, node_kind)
        time = log_sum_exp(self.node_time(nodes).squeeze(1), is_timed, batch, facts.size(0))
        by_graph = self.correction(torch.cat([graphs, numbers], 1)).squeeze(1) - time
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
