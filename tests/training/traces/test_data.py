"""Schedules as a cost model learns from them: failures, ties, groups and batches."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.made_up_products import made_up_pool

from gnnperf.nn.traces import batch_numbers
from gnnperf.training.traces.data import FAILED, RankingData, SchedulePool, padded_scores


@pytest.fixture(scope="module")
def pools() -> list[SchedulePool]:
    return [made_up_pool(f"w{seed}", seed) for seed in range(4)]


def test_failures_are_the_slowest_and_ties_are_known(pools: list[SchedulePool]) -> None:
    pool = pools[0]
    runtimes, intervals = pool.runtime_s.copy(), pool.interval_s.copy()
    runtimes[3], intervals[3] = np.nan, np.nan
    failed = SchedulePool(pool.workload, pool.graphs, pool.stores, runtimes, intervals)
    truth = failed.log_throughput
    assert truth[:, 0].argmin() == 3
    slowest = np.log(np.nanmin(runtimes) / np.nanmax(runtimes))
    assert truth[3].tolist() == pytest.approx([slowest - FAILED] * 3, rel=1e-5)
    ran = np.delete(truth, 3, axis=0)
    assert (ran[:, 1] < ran[:, 0]).all() and (ran[:, 0] < ran[:, 2]).all()
    assert failed.ran.tolist() == [n for n in range(10) if n != 3]


def test_groups_hold_every_schedule_once(pools: list[SchedulePool]) -> None:
    data = RankingData(pools, threads=2)
    groups = data.groups(4, np.random.default_rng(0))
    assert sorted(np.concatenate(groups).tolist()) == list(range(40))
    assert all(len(group) <= 4 and len({i // 10 for i in group}) == 1 for group in groups)


def test_batches_are_what_was_chosen(pools: list[SchedulePool]) -> None:
    data = RankingData(pools, threads=2)
    groups = [np.array([31, 7]), np.array([12])]
    node_costs, together = batch_numbers(data.graph_batch(groups), 2)
    numbers = data.numbers(groups)
    assert numbers.graph.equal(together.graph)
    assert numbers.rows.allclose(together.rows)
    assert data.node_costs(groups).allclose(node_costs)
    padded = data.padded(groups)
    assert padded.shape == (2, 2, 3)
    assert padded[0, 1, 0] == pytest.approx(float(pools[0].log_throughput[7, 0]))
    assert padded[1, 1].isnan().all()
    assert padded_scores(numbers.rows[:3, 0], groups).shape == (2, 2)
