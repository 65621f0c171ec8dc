"""What rankings are worth, against cases worked by hand."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from helpers.made_up_products import made_up_pool

from gnnperf.corpus.reader import MeasuredTasks
from gnnperf.errors import InputError
from gnnperf.evaluation.release import tensor_programs
from gnnperf.evaluation.trace_ranking import (
    RankingSettings,
    describe,
    headline,
    judged_of,
    ranking_steps,
    ranking_tasks,
    table,
)
from gnnperf.evaluation.trace_ranking.scores import (
    Ranking,
    first_pick_ratio,
    rank_pool,
    rank_randomly,
    summary,
)
from gnnperf.nn.traces import CostModelConfig, Described, TensorBundle
from gnnperf.training.traces.data import SchedulePool
from gnnperf.training.traces.fit import JudgeFitSettings


def pool_of(runtimes: list[float], baseline_s: float = 20.0) -> SchedulePool:
    pool = made_up_pool("w", 0, n=len(runtimes))
    measured = np.array(runtimes)
    return replace(
        pool,
        workload=replace(pool.workload, baseline_s=baseline_s),
        runtime_s=measured,
        interval_s=np.stack([measured, measured], 1),
    )


def test_a_ranking_by_hand() -> None:
    """Ranked first: the one of 4 s; among five also that of 2 s, not the best. One of seven failed."""
    pool = pool_of([1, 2, 4, 8, 8.5, 9, np.nan])
    found = rank_pool(pool, np.array([0.0, 3, 6, 5, 4, 2, 1]))
    assert (found.best_s, found.top1_s, found.top5_s) == (1, 4, 2)
    order = [0.0, 3, 6, 5, 4, 2, 1]
    runtimes = [1, 2, 4, 8, 8.5, 9, 9 * np.e]
    right = sum(
        (order[i] > order[j]) == (runtimes[i] < runtimes[j]) for i, j in itertools.combinations(range(7), 2)
    )
    assert found.pairwise == pytest.approx(right / 21)
    assert found.average_peak == pytest.approx((0.25 + 0.25 + 0.25 + 0.5 + 0.5 + 0.5 + 1) / 7)


def test_who_picks_what_fails_keeps_the_baseline() -> None:
    pool = pool_of([2, 5, np.nan], baseline_s=3.0)
    found = rank_pool(pool, np.array([0.0, 1, 2]))
    assert (found.best_s, found.top1_s, found.top5_s) == (2, 3, 2)
    assert found.pairwise == 0.0  # in pairs it is slower than all
    assert rank_randomly(pool).top1_s == pytest.approx((2 + 5 + 3) / 3)


def test_random_order_is_the_mean_over_all_orders() -> None:
    values = [1.0, 2.0, 5.0, 9.0]
    found = rank_randomly(pool_of(values))
    orders = [*itertools.permutations(values)]
    assert found.top1_s == pytest.approx(np.mean(values))
    assert found.average_peak == pytest.approx(
        np.mean([np.maximum.accumulate(1 / np.array(o)).mean() for o in orders])
    )
    assert found.pairwise == 0.5


def test_workloads_count_alike() -> None:
    """Half and all of the best: 2 / (2 + 1), however long they take."""
    slow = Ranking(10.0, 20.0, 10.0, 0.5, 0.7)
    fast = Ranking(1e-6, 1e-6, 1e-6, None, 0.9)
    assert summary([slow, fast]) == pytest.approx(
        {
            "top1": 2 / 3, "top5": 1.0, "pairwise": 0.5, "average_peak": 0.8, "top1_mean": 0.75,
            "top1_median": 0.75, "top1_least": 0.5,
        }
    )  # fmt: skip


def test_first_picks_are_compared_by_hand() -> None:
    """Twice and eight times as fast; and always four times. Workloads of one kind are no further cases."""
    own, other = ([Ranking(1.0, s, s, 0.5, 0.5) for s in picks] for picks in ((1.0, 1.0), (2.0, 8.0)))
    assert first_pick_ratio(own, other, "ab") == pytest.approx((4.0, 2.0, 8.0))
    four = [Ranking(1.0, 4.0, 1.0, 0.5, 0.5)] * 9
    assert first_pick_ratio(own[:1] * 9, four, "abcdefghi") == pytest.approx((4.0,) * 3)
    assert first_pick_ratio(own[:1] * 10, [*four, other[1]], "a" * 5 + "b" * 4 + "c") == pytest.approx(
        first_pick_ratio(own[:1] * 3, [four[0], four[0], other[1]], "abc")
    )


@pytest.mark.parametrize("helps", [True, False])
def test_a_network_that_does_not_help_is_not_released(helps: bool) -> None:
    """Without it, the schedule that takes twice the time comes first; or the network says nothing new."""
    pool = pool_of([1.0, 2.0])
    pools = [replace(pool, workload=replace(pool.workload, family=kind)) for kind in "abcde"]
    without = np.array([0.0, 1.0] if helps else [1.0, 0.0], np.float32)
    network = np.array([3.0, 0.0], np.float32)

    class Bundle:
        def describe(self, graphs: object, features: bool) -> Described:
            return Described((network + without) / 2, np.stack([network, without]), np.zeros((2, 0)))

    if helps:
        worth = tensor_programs._worth(cast(TensorBundle, Bundle()), pools, anyway=False)
        assert worth["tvm_ratio_at_1_low"] == pytest.approx(2.0) and worth["top1"] == 1.0
        with pytest.raises(
            InputError, match=r"of at least 5 operator kinds, .* got 1; collect more, or give"
        ):
            tensor_programs._worth(cast(TensorBundle, Bundle()), [pools[0]] * 5, anyway=False)
    else:
        with pytest.raises(InputError, match=r"got first picks 1.000 times as fast .* or give --anyway"):
            tensor_programs._worth(cast(TensorBundle, Bundle()), pools, anyway=False)
        assert tensor_programs._worth(cast(TensorBundle, Bundle()), pools, anyway=True)["top1"] == 1.0


def world() -> list[SchedulePool]:
    kinds = ("a", "a", "a", "b", "b", "c")
    splits = ("training", "training", "held_out", "training", "held_out", "training")
    return [
        made_up_pool(f"w{n}", n, split, kind)
        for n, (kind, split) in enumerate(zip(kinds, splits, strict=True))
    ]


def test_nothing_held_out_is_learned_from() -> None:
    pools = world()
    tasks = [*ranking_tasks(pools, RankingSettings(folds=2))]
    assert [task.held_out for task in tasks] == ["workload", "kind", "kind"]
    for task in tasks:
        assert all(p.workload.split == "training" for p in task.known)
        assert not {p.workload.name for p in task.known} & {p.workload.name for p in task.asked}
    assert [p.workload.name for p in tasks[0].asked] == ["w2", "w4"]
    for task in tasks[1:]:
        assert not {p.workload.family for p in task.known} & {p.workload.family for p in task.asked}
    assert sorted(p.workload.name for task in tasks[1:] for p in task.asked) == [f"w{n}" for n in range(6)]


def test_nothing_to_hold_out_is_said() -> None:
    with pytest.raises(InputError, match="4 others and 0 held out of 3 kinds; collect more"):
        list(ranking_tasks([p for p in world() if p.workload.split == "training"], RankingSettings()))


def test_the_whole_study_has_its_figures() -> None:
    fit = JudgeFitSettings(10, 10, trees=5, model=CostModelConfig(width=8, statement_width=8))
    settings, pools = RankingSettings(2, fit), world()
    steps = ranking_steps([*ranking_tasks(pools, settings)], settings)
    rows = json.loads(json.dumps([step(str) for step in steps.values()]))  # as the log keeps them
    judged = judged_of(rows)
    corpus = MeasuredTasks(Path("corpus"), "cpu", {p.workload.task: p.workload for p in pools}, {}, (), [])
    rows_shown = table(judged, pools, each_workload=True)
    figures = headline(rows_shown)
    for name in ("top1", "top5", "pairwise", "xgb_top1", "xgb_top5", "xgb_pairwise", "heldout_kind_top1",
                 "heldout_kind_xgb_top1", "mlp_top1", "random_top1", "average_peak"):  # fmt: skip
        assert 0 < figures[name] <= 1, name
    assert figures["random_pairwise"] == 0.5
    without = ("statements", "trees", "without_network")
    for judge in ("network", *without):
        assert 0 < figures[f"{judge}_top1"] <= 1 and 0 < figures[f"heldout_kind_{judge}_top1"] <= 1
    assert figures["tvm_network_top1"] == figures["network_top1"]
    kind_of = {pool.workload.name: pool.workload.family for pool in pools}
    own, others = (judged["kind", model] for model in ("gnnperf", "without_network"))
    ratio = first_pick_ratio([*own.values()], [*others.values()], [kind_of[name] for name in own])
    found = (figures[f"heldout_kind_ratio{end}"] for end in ("", "_low", "_high"))
    assert [*found] == pytest.approx(ratio) and "statements_ratio" not in figures
    assert figures["tvm_kinds_full_top5"] == figures["heldout_kind_top5"]
    best = max(figures[f"heldout_kind_{judge}_top1"] for judge in without)
    assert figures["tvm_kinds_without_network_top1"] == best
    # All, kinds and workloads of 2 held-out workloads of 2 kinds, and of 6 of 3 kinds, for each of 8 models.
    assert len(rows_shown) == 8 * (1 + 2 + 2) + 8 * (1 + 3 + 6)
    assert describe(pools, settings, corpus)["schedules_learned_from"] == 40
    # What an interrupted run has is a table too.
    part = headline(table(judged_of(rows[:1]), pools))
    assert part["top1"] == figures["top1"] and "xgb_top1" not in part
