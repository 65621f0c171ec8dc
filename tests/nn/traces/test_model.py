"""The judge of graphs adds up times of nodes, and reads what nodes cost."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.synthetic import nest_like

from gnnperf.errors import InputError
from gnnperf.graph import GraphBatch, collate, encode
from gnnperf.nn import Encoder, EncoderConfig, HeadConfig, ScheduleHead
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
        for net, bias in ((judge.head.node_time[-1], math.log(2.0)), (judge.head.correction[-1], 0.0)):
            assert isinstance(net, torch.nn.Linear)
            net.weight.zero_()
            net.bias.fill_(bias)
        scores = judge(batch, batch_numbers(batch, 2).node_costs)
    assert (-scores).exp().tolist() == pytest.approx([2.0 * (2 + 1 + 1), 2.0 * (3 + 1 + 1)])


def test_what_nodes_cost_is_read_and_passed_on(judge: GraphJudge, batch: GraphBatch) -> None:
    costs = batch_numbers(batch, 2).node_costs.requires_grad_()
    judge.head.correction[-1].weight.data.zero_()  # type: ignore[union-attr,operator]
    judge(batch, costs)[0].backward()
    assert costs.grad is not None
    of_first = costs.grad[batch.batch == 0]
    assert of_first.abs().sum() > 0, "its own costs"
    assert not costs.grad[batch.batch == 1].any(), "not those of another graph"


def test_it_may_begin_as_the_network_that_judges_nests(judge: GraphJudge, batch: GraphBatch) -> None:
    """Which, asked of programs without facts about a recipe, says the same."""
    encoder = Encoder(EncoderConfig(width=8, layers=1)).eval()
    head = ScheduleHead(8, 3, HeadConfig(width=8, numbers_width=8)).eval()
    costs, facts = batch_numbers(batch, 2).node_costs, torch.full((2, 3), float("nan"))
    encoder.fit_scales(batch, costs, batch)
    head.fit_scales(batch.node_kind, costs, batch.batch, torch.rand(2, 3))
    judge.begin_as(encoder, head)
    with torch.no_grad():
        nodes, graphs = encoder.states(*batch, costs)
        of_nests = head.judgements(nodes, graphs, batch.node_kind, costs, batch.batch, facts)[0]
        torch.testing.assert_close(judge(batch, costs), of_nests)


def test_it_does_not_begin_as_a_network_of_other_sizes(judge: GraphJudge) -> None:
    encoder, head = Encoder(EncoderConfig(width=12, layers=1)), ScheduleHead(12, 3)
    with pytest.raises(InputError, match=r"begin as with node_kind.weight of shape \[5, 8\], got \[5, 12\]"):
        judge.begin_as(encoder, head)
