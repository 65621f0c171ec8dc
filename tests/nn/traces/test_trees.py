"""Trees on the numbers of programs as a whole, against cases worked by hand and by learning."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
import pytest
import torch
import xgboost
from helpers.made_up_products import made_up_pool, product

from gnnperf.graph import collate, encode
from gnnperf.nn.traces import NUMBERS, StatementNumbers, TreeJudge, batch_numbers, program_numbers
from gnnperf.nn.traces.trees import PROGRAM_NUMBERS
from gnnperf.training.traces.data import RankingData
from gnnperf.training.traces.fit import JudgeFitSettings, fit_trees


def rows_of(*values: dict[str, float]) -> torch.Tensor:
    rows = torch.zeros(len(values), len(NUMBERS))
    for row, named in zip(rows, values, strict=True):
        for name, value in named.items():
            row[NUMBERS.index(name)] = value
    return rows


def test_what_statements_cost_adds_up() -> None:
    """Two statements of the first program, one of the second: 2^3 + 2^3 and 2^5 instructions."""
    main = {"share_of_flops": 0.9, "instructions_of_thread": 3, "depth": 2, "graph_0": 7}
    other = {"share_of_flops": 0.1, "instructions_of_thread": 3.5, "depth": 6, "graph_0": 7}
    alone = {"share_of_flops": 1, "instructions_of_thread": 5, "depth": 4, "graph_0": 4}
    numbers = StatementNumbers(rows_of(main, other, alone), torch.tensor([0, 0, 1]))
    found = program_numbers(numbers, 2)
    depth, shape = NUMBERS.index("depth"), NUMBERS.index("traffic_2k")
    assert found[:, depth].tolist() == [2, 4]  # of the statement with most of the operations
    assert found[:, len(NUMBERS) + depth].tolist() == [6, 4]  # of that with most instructions
    assert found[:, len(NUMBERS) + shape + depth].tolist() == [6, 4]  # the most
    total = log2(2**3 + 2**3.5)
    for expected in (total, total - 7):  # also per operation
        assert np.isclose(found[0], expected, atol=1e-5).any()
    assert np.isclose(found[1], 5 - 4).any()
    assert found[:, -1].tolist() == [2, 1]


def test_a_program_does_not_depend_on_the_company() -> None:
    graphs = [encode(product(2**n, 8, 16, 16, order=o)) for n, o in enumerate(("tikj", "tkij", "tijk"))]
    together = program_numbers(batch_numbers(collate(graphs), 2).statements, 3)
    for graph, row in zip(graphs, together, strict=True):
        assert program_numbers(batch_numbers(collate([graph]), 2).statements, 1)[0].tolist() == row.tolist()


@pytest.fixture(scope="module")
def data() -> RankingData:
    return RankingData([made_up_pool(f"w{seed}", seed, n=30) for seed in range(4)], threads=2)


def test_trees_learn_in_nats_and_are_kept(data: RankingData) -> None:
    trees = fit_trees(data, JudgeFitSettings(trees=60))
    programs = program_numbers(data.numbers([np.arange(120)]), 120)
    scores = trees.score(programs)
    for members in data.members:
        truth = data.truth[members, 0].numpy()
        assert truth[scores[members].argmax()] > -0.05
        assert np.polyfit(scores[members], truth, 1)[0] == pytest.approx(1, abs=0.4)
    again = TreeJudge.of_state(trees.state())
    assert again.score(programs).tolist() == scores.tolist()


def test_trees_say_what_xgboost_says() -> None:
    rng = np.random.default_rng(0)
    programs = rng.normal(size=(200, PROGRAM_NUMBERS)).astype(np.float32)
    programs[:, 1] = np.round(programs[:, 1])  # thresholds that numbers are equal to
    truth = programs[:, 0] * programs[:, 1] + programs[:, 2]
    booster = xgboost.train({"max_depth": 4, "nthread": 1}, xgboost.DMatrix(programs, truth), 20)
    found = TreeJudge.of_booster(booster, 0.5).score(programs)
    expected = 0.5 * booster.predict(xgboost.DMatrix(programs))
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "index", "value", "message"),
    [
        ("children", (0, 0, 0), 0, "children are not two nodes after it"),
        ("children", (0, 1, 1), 2, "children are not two nodes after it"),
        ("children", (0, 0, 1), 3, "children are not two nodes after it"),
        ("features", (0, 0), PROGRAM_NUMBERS, "features from 0 to 370"),
        ("features", (0, 0), -1, "features from 0 to 370"),
        ("values", (0, 2), np.nan, "not finite"),
    ],
)
def test_a_strangers_trees_lead_nowhere_else(name: str, index: Any, value: float, message: str) -> None:
    stump = TreeJudge(
        np.array([[[1, 2], [1, 1], [2, 2]]], np.int32),
        np.zeros((1, 3), np.int32),
        np.ones((1, 3), np.float32),
    )
    state = {key: tensor.clone() for key, tensor in stump.state().items()}
    state[name][index] = value
    with pytest.raises(ValueError, match=message):
        TreeJudge.of_state(state)
    for other in ({**state, name: state[name].double()}, {**state, name: state[name][:, :2]}, {}):
        with pytest.raises(ValueError, match="trees: got"):
            TreeJudge.of_state(other)
