"""Graph-level values of a nest: work, traffic, parallelism."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from gnnperf.graph.fields import Value
from gnnperf.graph.vocabulary import element_bytes
from gnnperf.nests.access_function import AccessFunction
from gnnperf.nests.ir import Buffer
from gnnperf.nests.iteration_space import Space

Work = Sequence[tuple[Value, tuple[Space, ...]]]
"""(FLOP per instance, loops around it) of every statement."""


def totals(
    work: Work,
    traffic: Mapping[str, Sequence[tuple[AccessFunction, float]]],
    reduced: set[Space],
    buffers: Mapping[str, Buffer],
) -> dict[str, Value]:
    """Values of the graph; `traffic` has every access of every buffer in memory, with its touches."""
    stacks = [around for _, around in work]
    flops = sum(float(per) * _iterations(around) for per, around in work if isinstance(per, int | float))
    item_bytes = {name: element_bytes(buffers[name].dtype) for name in traffic}
    distinct = sum(_union([f for f, _ in group]) * item_bytes[name] for name, group in traffic.items())
    parallel = [[s for s in around if s.loop.independent and s not in reduced] for around in stacks]
    return {
        "total_flops": flops,
        "distinct_bytes": distinct,
        "touched_bytes": sum(
            sum(touches for _, touches in group) * item_bytes[name] for name, group in traffic.items()
        ),
        "arithmetic_intensity": flops / distinct if distinct else 0,
        "parallel_iterations": max(map(_iterations, parallel), default=0),
        "reduction_iterations": max((_iterations(s for s in a if s in reduced) for a in stacks), default=0),
        "loop_depth": max(map(len, stacks), default=0),
        "statements": len(stacks),
    }


def _iterations(spaces: Iterable[Space]) -> float:
    """Product of the trip counts, unknown ones taken as one."""
    return math.prod(1.0 if s.trips is None else s.trips for s in spaces)


def _union(functions: Sequence[AccessFunction]) -> float:
    """Distinct elements touched by several accesses to one buffer: at most their bounding box, at
    most their sum. Exact for translates of one box (stencils) and for interleaved strides."""
    box = 1.0
    for ranges in zip(*(f.ranges for f in functions), strict=True):
        box *= max(high for _, high in ranges) - min(low for low, _ in ranges) + 1
    return min(box, sum(f.distinct for f in functions))
