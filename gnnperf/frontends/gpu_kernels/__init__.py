"""Tunable GPU kernels: described once as data, a configuration makes of them a scheduled program graph.

A description is a YAML file; those under `kernels/` are the examples. Its fields:

    name:        of the kernel.
    sizes:       of the problem, by name: {M: 4096}.
    parameters:  values that each tuning parameter may have: {MWG: [64, 16]}; the first is the default.
    constraints: expressions of parameters and sizes that hold in every configuration.
    buffers:     by name: {dtype: float32, shape: [K, M]}, the last dimension contiguous; read_only: where
                 loads may go through a cache for data that is only read; values: of one whose elements are in
                 subscripts of others: a number that they are evenly drawn below, or file.npy with them,
                 beside the description.
    loops:       outermost first, each over part of an axis: {axis: m, extent: M // MWG}, with
                 bind: block.x ... thread.z; unroll and vector: whether it is; ordered: true where
                 iterations depend on one another; step: how far the axis moves per iteration, by default
                 as far as the loops further inside over the same axis reach.
    stage:       copies in shared memory: {buffer: A, threads: [32, 8]} (the block's shape while it copies),
                 when, vector (elements per load), pad (elements added to a row), copies (2: double
                 buffering), inside: the loop of a thread that refills it, by axis and number (k0: the
                 outermost over k that is not bound).
    registers:   buffers of which every thread keeps its elements until it is done.
    compute:     statements in the innermost loop, `C[n, m] += A[k, m] * B[k, n]`; or {do: ..., when: ...}.
                 Subscripts are sums of axes, integers and, of what is read, elements of buffers:
                 `y[i] = x[i + shift[i]]`.
    blocks_per_core: blocks that the compiler has to leave registers for; 0: not said.
    launches:    how often the host launches it, one after another; 1 if it is not said.
    then:        a list of what is launched after that: each has loops and compute, and may have stage,
                 registers, blocks_per_core and launches (0 in configurations that do without it).

Wherever a value depends on the configuration it is an expression of integers (see `Expression`).
"""

from gnnperf.frontends.gpu_kernels.description import (
    Description,
    find_description,
    list_descriptions,
    read_description,
)
from gnnperf.frontends.gpu_kernels.expressions import Expression
from gnnperf.frontends.gpu_kernels.nest import scheduled_graph, scheduled_nest
from gnnperf.frontends.gpu_kernels.physics import check_gpu, of_all_launches, physical_features
from gnnperf.frontends.gpu_kernels.plan import Plan, configurations_of, is_tunable, parse_configuration, plan

__all__ = [
    "Description",
    "Expression",
    "Plan",
    "check_gpu",
    "configurations_of",
    "find_description",
    "is_tunable",
    "list_descriptions",
    "of_all_launches",
    "parse_configuration",
    "physical_features",
    "plan",
    "read_description",
    "scheduled_graph",
    "scheduled_nest",
]
