"""Ranking of measured TVM schedules by cost models that have never seen the workload, or its kind."""

from gnnperf.evaluation.trace_ranking.study import (
    RankingSettings,
    RankingTask,
    folds_of,
    judged_of,
    ranking_steps,
    ranking_tasks,
    summarise,
)

__all__ = [
    "RankingSettings",
    "RankingTask",
    "folds_of",
    "judged_of",
    "ranking_steps",
    "ranking_tasks",
    "summarise",
]
