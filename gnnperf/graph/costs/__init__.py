"""What scheduled graphs cost a processor, as fields of their nodes."""

from gnnperf.graph.costs.arrays import GraphArrays
from gnnperf.graph.costs.fields import (
    ACCESS_COSTS,
    CACHE_BYTES,
    COST_FIELDS,
    INNERMOST,
    LOOP_COSTS,
    STATEMENT_COSTS,
    CostField,
)
from gnnperf.graph.costs.rows import GraphCosts

__all__ = [
    "ACCESS_COSTS",
    "CACHE_BYTES",
    "COST_FIELDS",
    "INNERMOST",
    "LOOP_COSTS",
    "STATEMENT_COSTS",
    "CostField",
    "GraphArrays",
    "GraphCosts",
]
