"""Held-out tensor programs tuned by transfer, beside MetaSchedule's search and PyTorch."""

from gnnperf.evaluation.tensor.kinds import ModelsWithoutKinds
from gnnperf.evaluation.tensor.study import Study, describe_setup, summarise

__all__ = ["ModelsWithoutKinds", "Study", "describe_setup", "summarise"]
