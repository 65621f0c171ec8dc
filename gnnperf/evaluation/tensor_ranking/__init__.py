"""Ranking of measured TVM schedules by cost models that have never seen the workload, or its kind."""

from gnnperf.evaluation.tensor_ranking.study import (
    RankingSettings,
    RankingTask,
    evaluate_ranking,
    ranking_tasks,
    summarise,
)

__all__ = ["RankingSettings", "RankingTask", "evaluate_ranking", "ranking_tasks", "summarise"]
