"""The judge of graphs adds up times of nodes, and reads what nodes cost."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.synthetic import nest_like

from gnnperf.graph import GraphBatch, collate, encode
from gnnperf.nn.traces import CostModelConfig, batch_numbers
from gnnperf.nn.traces.model import GraphJudge


@pytest.fixture
def judge() -> GraphJudge:
    torch.manual_seed(0)
    return GraphJudge(CostModelConfig(width=8, layers=1, head_width=8)).eval()


@pytest.fixture(scope="module")
def batch() -> GraphBatch:
    return collate([encode(nest_like([8, 16])), encode(nest_like([4, 4, 9], reduction=True))])


def test_times_of_statements_accesses_and_loops_are_added(judge: GraphJudge, batch: GraphBatch) -> None:
    """Two loops, or three, around a statement with an access: each takes 2 s, and nothing is corrected."""
    with torch.no_grad():
        for net, bias in ((judge.node_time[-1], math.log(2.0)), (judge.correction[-1], 0.0)):
            assert isinstance(net, torch.nn.Linear)
            net.weight.zero_()
            net.bias.fill_(bias)
        scores = judge(batch, batch_numbers(batch, 2).node_costs)
    assert (-scores).exp().tolist() == pytest.approx([2.0 * (2 + 1 + 1), 2.0 * (3 + 1 + 1)])


def test_what_nodes_cost_is_read_and_passed_on(judge: GraphJudge, batch: GraphBatch) -> None:
    costs = batch_numbers(batch, 2).node_costs.requires_grad_()
    judge.correction[-1].weight.data.zero_()  # type: ignore[union-attr,operator]
    judge(batch, costs)[0].backward()
    assert costs.grad is not None
    of_first = costs.grad[batch.batch == 0]
    assert of_first.abs().sum() > 0, "its own costs"
    assert not costs.grad[batch.batch == 1].any(), "not those of another graph"
