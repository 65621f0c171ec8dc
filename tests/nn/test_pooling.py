"""Costs pooled over graphs, and sums of times, worked by hand."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from gnnperf.nn.pooling import log_sum_exp, pool_costs

BATCH = torch.tensor([0, 0, 0, 2])
"""Three nodes of one graph, none of the next, one of the last."""


def test_mean_and_maximum_of_the_nodes_that_carry_a_field() -> None:
    costs = torch.tensor([[1.0, -4.0], [3.0, -2.0], [100.0, 100.0], [5.0, 7.0]])
    carried = torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    means_then_maxima = [[2.0, -3.0, 3.0, -2.0], [0.0] * 4, [0.0, 7.0, 0.0, 7.0]]
    assert pool_costs(costs, carried, BATCH, 3).tolist() == means_then_maxima


def test_a_field_that_is_far_below_zero_has_a_maximum() -> None:
    costs = torch.tensor([[-1e6], [-2e6], [0.0], [0.0]])
    carried = torch.tensor([[1.0], [1.0], [0.0], [0.0]])
    assert pool_costs(costs, carried, BATCH, 3)[0].tolist() == [-1.5e6, -1e6]


def test_times_of_the_statements_of_a_graph_add_up() -> None:
    times = torch.tensor([1.0, 2.0, 50.0, 3.0])
    counted = torch.tensor([True, True, False, True])
    one, none, last = log_sum_exp(times, counted, BATCH, 3).tolist()
    assert one == pytest.approx(log(exp(1) + exp(2)))
    assert last == pytest.approx(3.0)
    assert none == pytest.approx(-30 + log(1e-12))  # no statement, next to no time


def test_times_that_overflow_add_up_and_learn() -> None:
    times = torch.tensor([1e4, 1e4, 0.0, -20.0], requires_grad=True)
    counted = torch.tensor([True, True, False, True])
    total = log_sum_exp(times, counted, BATCH, 3)
    assert total.tolist()[0] == pytest.approx(1e4 + log(2))
    assert total.tolist()[2] == pytest.approx(-20)
    total.sum().backward()  # type: ignore[no-untyped-call]
    assert times.grad is not None  # shares of the total
    assert times.grad.tolist() == pytest.approx([0.5, 0.5, 0.0, 1.0])
