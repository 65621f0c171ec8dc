from __future__ import annotations

import torch

from gnnperf.nn import AttentionReadout, segment_softmax, segment_sum


def test_segment_softmax_is_a_softmax_per_segment() -> None:
    scores = torch.tensor([[0.0], [1.0], [5.0]])
    weights = segment_softmax(scores, torch.tensor([0, 0, 2]), 3)
    torch.testing.assert_close(weights[:2], scores[:2].softmax(0))
    assert weights[2] == 1.0


def test_segment_softmax_survives_scores_that_overflow_exp() -> None:
    weights = segment_softmax(torch.tensor([[1e4], [1e4], [-1e4]]), torch.tensor([0, 0, 0]), 1)
    torch.testing.assert_close(weights, torch.tensor([[0.5], [0.5], [0.0]]))


def test_segment_sum_of_nothing_is_zero() -> None:
    assert segment_sum(torch.empty(0, 2), torch.empty(0, dtype=torch.int64), 3).tolist() == [[0.0, 0.0]] * 3


def test_readout_heads_attend_separately() -> None:
    readout = AttentionReadout(width=2, heads=2)
    with torch.no_grad():
        readout.value.weight.copy_(torch.eye(2))
        readout.value.bias.zero_()
        readout.score.weight.copy_(torch.tensor([[100.0, 0.0], [-100.0, 0.0]]))
        readout.score.bias.zero_()
    nodes = torch.tensor([[1.0, 5.0], [-1.0, 7.0]])
    # Head 0 attends to the first node and owns column 0, head 1 to the second and owns column 1.
    torch.testing.assert_close(readout(nodes, torch.tensor([0, 0]), 1), torch.tensor([[1.0, 7.0]]))
