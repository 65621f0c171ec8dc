"""The networks for tunable kernels as functions of plain tensors.

What they read (features, occupancy, the time of each resource) is computed from a kernel's description by
`gnnperf.frontends.gpu_kernels`; the artefact holds the networks, and its metadata what every column is.
"""

from __future__ import annotations

import torch

from gnnperf.export.functions import Function, TensorSpec
from gnnperf.nn.demand import GENERIC, OWN, STATE, TIMES, Demand, DemandBundle


def demand_functions(bundle: DemandBundle) -> tuple[Function, ...]:
    """`<kernel>_<i>` of every network: the prediction for a kernel is the mean over its networks."""
    return tuple(
        _function(f"{kernel}_{i}", demand)
        for kernel, demands in bundle.networks.items()
        for i, demand in enumerate(demands)
    )


def _function(name: str, demand: Demand) -> Function:
    config = demand.net.config
    own = () if demand.parameters is None else (*OWN, *demand.parameters)
    columns = (
        ("features", (*GENERIC, *own), "log2", "of a configuration; of a tuning parameter, log2(1 + value)"),
        ("state", STATE, "log2", "how the configuration occupies the GPU"),
        ("times", (*TIMES, "t_latency"), "log2(ms)", "of each resource alone"),
        ("share", tuple(d.name for d in demand.devices), "", "how much each GPU stands for this one"),
    )
    widths = (config.features, config.state, config.resources, config.devices)
    inputs = tuple(
        TensorSpec(what, "float32", ("n", width), unit, meaning, names)
        for width, (what, names, unit, meaning) in zip(widths, columns, strict=True)
    )
    output = TensorSpec("runtime", "float32", ("n",), "log2(ms)", "predicted runtime")
    example = tuple(torch.zeros(2, width) for width in widths)
    return Function(name, demand.net, inputs, (output,), example, traced=True)
