"""Runtimes on GPUs that were left out: operators one by one, and whole models."""

from gnnperf.evaluation.gpu.models import ModelSettings, evaluate_models
from gnnperf.evaluation.gpu.operators import OperatorSettings, Points, evaluate_operators

__all__ = ["ModelSettings", "OperatorSettings", "Points", "evaluate_models", "evaluate_operators"]
