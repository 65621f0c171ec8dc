"""Runtimes of tunable GPU kernels: what configurations demand of a GPU, and what the GPU supplies."""

from gnnperf.nn.demand.bundle import ANY, LEVELS, RUNS, DemandBundle, measured_files
from gnnperf.nn.demand.demand import GENERIC, OWN, STATE, TIMES, Demand, likeness, mean_prediction
from gnnperf.nn.demand.network import DemandConfig, DemandNet

__all__ = [
    "ANY",
    "GENERIC",
    "LEVELS",
    "OWN",
    "RUNS",
    "STATE",
    "TIMES",
    "Demand",
    "DemandBundle",
    "DemandConfig",
    "DemandNet",
    "likeness",
    "mean_prediction",
    "measured_files",
]
