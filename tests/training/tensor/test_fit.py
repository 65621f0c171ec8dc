"""The cost model learns: a small set by heart, and from it what holds for workloads it has not seen."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_products import made_up_pool

from gnnperf.graph import collate
from gnnperf.nn.tensor import CostModelConfig, statement_numbers
from gnnperf.training.tensor.data import FAILED, Pool, RankingData, padded_scores
from gnnperf.training.tensor.fit import FitSettings, fit_cost_model

SMALL = FitSettings(
    graph_steps=120, statement_steps=150, group=10, groups=4,
    model=CostModelConfig(width=16, layers=2, statement_width=32, dropout=0.0, statement_dropout=0.0),
)  # fmt: skip


@pytest.fixture(scope="module")
def pools() -> list[Pool]:
    return [made_up_pool(f"w{seed}", seed) for seed in range(4)]


def best_found(pool: Pool, scores: np.ndarray) -> float:
    return float(pool.runtime_s.min() / pool.runtime_s[scores.argmax()])


def test_forty_schedules_are_learned_by_heart(pools: list[Pool]) -> None:
    model = fit_cost_model(pools, SMALL)
    for pool in pools:
        batch = collate(pool.graphs)
        judgements = model.judgements(batch, statement_numbers(batch, 2)).detach().numpy()
        assert best_found(pool, judgements.mean(0)) > 0.85  # two of ten may be nearly alike
        for judged in judgements:
            assert np.corrcoef(judged, -np.log(pool.runtime_s))[0, 1] > 0.9


def test_training_can_be_repeated(pools: list[Pool]) -> None:
    brief = FitSettings(graph_steps=2, statement_steps=2, model=SMALL.model)
    first, again, other = (fit_cost_model(pools[:2], brief, seed=s).state_dict() for s in (0, 0, 1))
    assert all(first[name].equal(again[name]) for name in first)
    assert not all(first[name].equal(other[name]) for name in first)


def test_failures_are_the_slowest_and_ties_are_known(pools: list[Pool]) -> None:
    pool = pools[0]
    runtimes, intervals = pool.runtime_s.copy(), pool.interval_s.copy()
    runtimes[3], intervals[3] = np.nan, np.nan
    failed = Pool(pool.workload, pool.graphs, pool.stores, runtimes, intervals)
    truth = failed.log_throughput
    assert truth[:, 0].argmin() == 3
    slowest = np.log(np.nanmin(runtimes) / np.nanmax(runtimes))
    assert truth[3].tolist() == pytest.approx([slowest - FAILED] * 3, rel=1e-5)
    ran = np.delete(truth, 3, axis=0)
    assert (ran[:, 1] < ran[:, 0]).all() and (ran[:, 0] < ran[:, 2]).all()
    assert failed.ran.tolist() == [n for n in range(10) if n != 3]


def test_groups_hold_every_schedule_once(pools: list[Pool]) -> None:
    data = RankingData(pools, threads=2)
    groups = data.groups(4, np.random.default_rng(0))
    assert sorted(np.concatenate(groups).tolist()) == list(range(40))
    assert all(len(group) <= 4 and len({i // 10 for i in group}) == 1 for group in groups)


def test_batches_are_what_was_chosen(pools: list[Pool]) -> None:
    data = RankingData(pools, threads=2)
    groups = [np.array([31, 7]), np.array([12])]
    together = statement_numbers(data.graph_batch(groups), 2)
    numbers = data.numbers(groups)
    assert numbers.graph.equal(together.graph)
    assert numbers.rows.allclose(together.rows)
    padded = data.padded(groups)
    assert padded.shape == (2, 2, 3)
    assert padded[0, 1, 0] == pytest.approx(float(pools[0].log_throughput[7, 0]))
    assert padded[1, 1].isnan().all()
    assert padded_scores(numbers.rows[:3, 0], groups).shape == (2, 2)
