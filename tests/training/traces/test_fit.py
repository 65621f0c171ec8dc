"""The cost model learns: a small set by heart, and from it what holds for workloads it has not seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from helpers.made_up_products import made_up_pool

from gnnperf.graph import collate
from gnnperf.nn import Bundle, Encoder, EncoderConfig, HeadConfig, ScheduleHead
from gnnperf.nn.traces import CostModelConfig, batch_numbers
from gnnperf.training.traces.data import RankingData, SchedulePool
from gnnperf.training.traces.fit import JudgeFitSettings, fit_cost_model, fit_judges

SMALL = JudgeFitSettings(
    graph_steps=160, statement_steps=400, group=10, groups=4,
    model=CostModelConfig(width=16, layers=2, statement_width=32, dropout=0.0, statement_dropout=0.0),
)  # fmt: skip


@pytest.fixture(scope="module")
def pools() -> list[SchedulePool]:
    return [made_up_pool(f"w{seed}", seed) for seed in range(4)]


def best_found(pool: SchedulePool, scores: np.ndarray) -> float:
    return float(pool.runtime_s.min() / pool.runtime_s[scores.argmax()])


def test_forty_schedules_are_learned_by_heart(pools: list[SchedulePool]) -> None:
    model = fit_cost_model(RankingData(pools, 2), SMALL)
    for pool in pools:
        batch = collate(pool.graphs)
        judgements = model(batch, *batch_numbers(batch, 2)).detach().numpy()
        for judged in judgements:
            assert best_found(pool, judged) > 0.95


def test_training_can_be_repeated(pools: list[SchedulePool]) -> None:
    brief = JudgeFitSettings(graph_steps=2, statement_steps=2, model=SMALL.model)
    data = RankingData(pools[:2], 2)
    first, again, other = (fit_cost_model(data, brief, seed=s).state_dict() for s in (0, 0, 1))
    assert all(first[name].equal(again[name]) for name in first)
    assert not all(first[name].equal(other[name]) for name in first)


def test_every_seed_gives_a_model_and_all_share_the_trees(pools: list[SchedulePool]) -> None:
    brief = JudgeFitSettings(graph_steps=1, statement_steps=1, trees=2, model=SMALL.model)
    models, trees = fit_judges(pools[:2], brief, seeds=(0, 1))
    assert not models[0].by_graph.net.node.weight.equal(models[1].by_graph.net.node.weight)
    assert len(trees.values) == 2


def test_the_network_begins_as_that_of_nests(pools: list[SchedulePool]) -> None:
    encoder, head = Encoder(EncoderConfig(width=16)), ScheduleHead(16, 3, HeadConfig(width=96))
    start, data = Bundle(encoder, head), RankingData(pools[:2], 2)
    brief = JudgeFitSettings(graph_steps=1, statement_steps=1, started_learning_rate=1e-9, model=SMALL.model)
    begun, drawn = (fit_cost_model(data, brief, start=given).by_graph for given in (start, None))
    assert torch.allclose(begun.net.cost.weight, encoder.cost.weight, atol=1e-6)
    assert torch.allclose(begun.head.node_time[-1].weight, head.node_time[-1].weight, atol=1e-6)
    assert not torch.allclose(drawn.net.cost.weight, encoder.cost.weight, atol=1e-2)
