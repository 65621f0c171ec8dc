"""Configurations of tunable kernels for GPUs, and of kernels, that nobody measured: replayed."""

from gnnperf.evaluation.gpu_schedules.study import StudySettings, evaluate_gpu_schedules, summarise

__all__ = ["StudySettings", "evaluate_gpu_schedules", "summarise"]
