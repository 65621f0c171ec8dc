"""Training of the cost model: a plain loop, since it takes minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from gnnperf.nn import Bundle
from gnnperf.nn.traces.model import CostModel, CostModelConfig
from gnnperf.nn.traces.ranking_loss import RankingLoss
from gnnperf.nn.traces.trees import TreeJudge, program_numbers
from gnnperf.training.traces.data import RankingData, SchedulePool, padded_scores

_SCALED_BY = 2000
"""Graphs whose statistics scale the inputs of the judge of graphs: all of them would tell no more."""


@dataclass(frozen=True)
class JudgeFitSettings:
    """How long and how fast the judges learn: steps of the optimiser, and the peak of the learning rate,
    which falls to zero along a cosine; started: of a judge of graphs that begins as another network. group:
    schedules of a workload that are ranked against each other at a time. groups: per step. trees: boosted.
    model: hyperparameters of the networks."""

    graph_steps: int = 1000
    statement_steps: int = 1500
    graph_learning_rate: float = 3e-3
    started_learning_rate: float = 1e-3
    statement_learning_rate: float = 2e-3
    weight_decay: float = 2e-2
    group: int = 32
    groups: int = 8
    trees: int = 300
    model: CostModelConfig = field(default_factory=CostModelConfig)


DEFAULT_FIT = JudgeFitSettings()
QUICK_FIT = JudgeFitSettings(graph_steps=20, statement_steps=100, trees=20)


def fit_judges(
    pools: Sequence[SchedulePool],
    settings: JudgeFitSettings = DEFAULT_FIT,
    seeds: Sequence[int] = (0,),
    start: Bundle | None = None,
) -> tuple[list[CostModel], TreeJudge]:
    """Train all judges on the schedules of these workloads: the networks once with each seed. start: as of
    `fit_cost_model`."""
    data = RankingData(pools, settings.model.threads)
    models = [fit_cost_model(data, settings, seed, start) for seed in seeds]
    return models, fit_trees(data, settings, seeds[0])


def fit_trees(data: RankingData, settings: JudgeFitSettings = DEFAULT_FIT, seed: int = 0) -> TreeJudge:
    """Train the trees on all schedules."""
    programs = program_numbers(data.numbers([np.arange(len(data.graphs))]), len(data.graphs))
    truth = data.truth[:, 0].numpy()
    return TreeJudge.fit(
        [programs[members] for members in data.members],
        [truth[members] for members in data.members],
        settings.trees,
        seed,
    )


def fit_cost_model(
    data: RankingData, settings: JudgeFitSettings = DEFAULT_FIT, seed: int = 0, start: Bundle | None = None
) -> CostModel:
    """Train the networks on all schedules, for a fixed number of steps. start: the networks of loop nests, as
    which the judge of graphs begins; None: with weights as drawn. Raises InputError where these are of other
    sizes."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        model = CostModel(settings.model)
        some = rng.permutation(len(data.graphs))[:_SCALED_BY]
        if start is None:
            rate = settings.graph_learning_rate
            model.by_graph.fit_scales(data.graph_batch([some]), data.node_costs([some]))
        else:
            rate = settings.started_learning_rate
            model.by_graph.begin_as(start.encoder, start.head)
        model.by_statements.scale.fit(data.numbers([np.arange(len(data.graphs))]).rows)
        train_judge(
            model.by_statements, data, settings, rng,
            settings.statement_steps, settings.statement_learning_rate,
            lambda groups: model.by_statements(data.numbers(groups), sum(map(len, groups))),
        )  # fmt: skip
        train_judge(
            model.by_graph, data, settings, rng, settings.graph_steps, rate,
            lambda groups: model.by_graph(data.graph_batch(groups), data.node_costs(groups)),
        )  # fmt: skip
    return model.eval()


def train_judge(
    judge: nn.Module,
    data: RankingData,
    settings: JudgeFitSettings,
    rng: np.random.Generator,
    steps: int,
    learning_rate: float,
    score: Callable[[Sequence[np.ndarray]], Tensor],
) -> None:
    """Train a module whose scores of groups of schedules, one after the other, `score` gives."""
    loss = RankingLoss()
    optimizer = torch.optim.AdamW(judge.parameters(), lr=learning_rate, weight_decay=settings.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, total_steps=steps + 1, pct_start=0.1
    )
    judge.train()
    for _, batch in zip(range(steps), _batches(data, settings, rng), strict=False):
        truth = data.padded(batch)
        value = loss(padded_scores(score(batch), batch), truth[..., 0], truth[..., 1], truth[..., 2])
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def _batches(
    data: RankingData, settings: JudgeFitSettings, rng: np.random.Generator
) -> Iterator[list[np.ndarray]]:
    """Groups of all schedules, epoch after epoch, without end."""
    while True:
        groups = data.groups(settings.group, rng)
        for at in range(0, len(groups), settings.groups):
            yield groups[at : at + settings.groups]
