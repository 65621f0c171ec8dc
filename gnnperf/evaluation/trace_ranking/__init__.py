"""Ranking of measured TVM schedules by cost models that have never seen the workload, or its kind."""

from gnnperf.evaluation.trace_ranking.baselines import RankingSettings
from gnnperf.evaluation.trace_ranking.study import (
    RankingTask,
    describe,
    folds_of,
    headline,
    judged_of,
    ranking_steps,
    ranking_tasks,
    table,
)

__all__ = [
    "RankingSettings",
    "RankingTask",
    "describe",
    "folds_of",
    "headline",
    "judged_of",
    "ranking_steps",
    "ranking_tasks",
    "table",
]
