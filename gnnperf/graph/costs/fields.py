"""The registry of cost fields: what a scheduled graph costs a processor, by the node that it is about.

Nothing of it is measured or predicted: trips and their balance over the threads, vectors and the strides
under them, accumulators and the loops that keep them, the footprint of every tile, and with it the bytes that
cross caches of any size. `gnnperf.graph.costs.GraphCosts` computes the columns in the order of this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

CostScale: TypeAlias = Literal["log2", "log2(1+x)", "linear", "flag"]

CACHE_BYTES = tuple(2.0**p for p in range(11, 27, 2))
"""Sizes of caches, 2 KiB to 32 MiB, whose traffic is counted; a network finds those that matter."""
INNERMOST = 5
"""Loops around a statement that are described one by one."""


@dataclass(frozen=True, slots=True)
class CostField:
    """One column.

    kinds: of the nodes that carry it. scale: how the quantity, of that unit, is brought into the column; with
    "log2", 0 where there is none of it.
    """

    name: str
    kinds: tuple[str, ...]
    unit: str
    meaning: str
    scale: CostScale


_STATEMENT = ("compute", "intrinsic")
_KIB = [int(size) >> 10 for size in CACHE_BYTES]


def _of_statement(name: str, unit: str, meaning: str, scale: CostScale = "log2") -> CostField:
    return CostField(name, _STATEMENT, unit, meaning, scale)


# fmt: off
_SCALARS = (
    _of_statement("instances", "instances", "how often it runs in total"),
    _of_statement("threads_share", "threads", "how much faster they are than one, for their uneven shares"),
    _of_statement("instances_of_thread", "instances", "how often the busiest thread runs it"),
    _of_statement("flops_of_thread", "FLOP", "arithmetic operations of that thread", "log2(1+x)"),
    _of_statement("is_parallel", "", "some loop around it runs on threads", "flag"),
    _of_statement("parallel_trips", "iterations", "of the loops that threads share"),
    _of_statement("balance", "", "the busiest thread's iterations over an even share of them"),
    _of_statement("launches", "launches", "how often the threads are set to work", "log2(1+x)"),
    _of_statement("task_instances", "instances", "of it in one iteration that threads share"),
    _of_statement("depth", "loops", "around it", "linear"),
    _of_statement("is_intrinsic", "", "is a tensor instruction", "flag"),
    _of_statement("vector_extent", "elements", "iterations of the loops marked as vectorized"),
    _of_statement("vector_registers", "registers", "that they fill"),
    _of_statement("vector_fill", "", "share of those registers that is used", "linear"),
    _of_statement("body_instructions", "instructions", "vector instructions of the straight code around it"),
    _of_statement("instructions_of_thread", "instructions", "vector instructions of the busiest thread"),
    _of_statement("unrolled_extent", "iterations", "of the straight code around it, without vectors"),
    _of_statement("accumulator_lines", "lines", "of 64 bytes that straight code writes", "log2(1+x)"),
    _of_statement("body_lines", "lines", "of 64 bytes that straight code reads", "log2(1+x)"),
    _of_statement("accumulating_trips", "iterations", "of loops around straight code that keep its target"),
    _of_statement("inner_reduction_trips", "iterations", "of the innermost loops that keep its target"),
    _of_statement("reads", "accesses", "that it makes to read", "linear"),
    _of_statement("target_moves", "", "the innermost loop moves its target", "flag"),
    _of_statement("target_unit", "accesses", "written one by one by the innermost loop", "linear"),
    _of_statement("target_strided", "accesses", "written further apart", "linear"),
    _of_statement("reads_invariant", "accesses", "that the innermost loop does not move", "linear"),
    _of_statement("reads_unit", "accesses", "read one by one by the innermost loop", "linear"),
    _of_statement("reads_strided", "accesses", "read further apart", "linear"),
    _of_statement("gathered_of_thread", "elements", "read further apart by the busiest thread", "log2(1+x)"),
    _of_statement("share_of_flops", "", "of the arithmetic operations of the graph", "linear"),
    _of_statement("share_of_instances", "", "of the instances of all statements of the graph", "linear"),
    _of_statement("element_bytes", "bytes", "size of an element of its target", "linear"),
    _of_statement("footprint_lines", "lines", "of 64 bytes that it touches in total", "log2(1+x)"),
)
_LANES = (
    _of_statement("lanes", "elements", "of one vector, marked or found by the compiler"),
    _of_statement("auto_vectorized", "", "the compiler finds the vectors", "flag"),
    _of_statement("lanes_padded", "", "the next power of two of lanes over their number"),
    _of_statement("lanes_awkward", "", "vectors fill registers, but no power of two of them", "flag"),
    _of_statement("awkward_accumulators", "iterations", "that keep such vectors in registers"),
)
_CORE: tuple[tuple[str, str, str, CostScale], ...] = (
    ("accumulators", "registers", "written inside", "log2(1+x)"),
    ("instructions", "instructions", "vector instructions inside", "log2"),
    ("loads", "loads", "inside, of vectors or elements", "log2(1+x)"),
    ("trips", "iterations", "of the loops around that keep the accumulators", "log2"),
    ("loads_of_thread", "loads", "of the busiest thread, accumulators included", "log2"),
    ("instructions_of_thread", "instructions", "of the busiest thread", "log2"),
    ("spilled", "", "accumulators over the registers there are", "log2"),
    ("gathers_of_thread", "elements", "that the busiest thread gathers", "log2(1+x)"),
)
_LEVELS: tuple[tuple[str, str, str, CostScale], ...] = (
    ("extent", "iterations", "trip count of the {}", "log2"),
    ("vectorized", "", "the {} is vectorized", "flag"),
    ("unrolled", "", "the {} is unrolled", "flag"),
    ("parallel", "", "threads share the {}", "flag"),
    ("accumulates", "", "the {} keeps the target", "flag"),
    ("reused", "accesses", "to read that the {} does not move", "linear"),
    ("unit", "accesses", "that the {} moves one by one", "linear"),
    ("lines", "lines", "of 64 bytes that one run of the {} touches", "log2(1+x)"),
)
# fmt: on
CORES: Mapping[str, str] = MappingProxyType(
    {
        "straight": "the vectorized and unrolled loops",
        "tile": "the innermost loop that keeps the target",
    }
)
"""Two guesses of what the compiler keeps in registers: what lies inside of which loops."""


def _nth(level: int) -> str:
    return "innermost loop" if level == 0 else f"loop {level} further out"


STATEMENT_COSTS: tuple[CostField, ...] = (
    *_SCALARS,
    *_LANES,
    *(
        _of_statement(f"{core}_{name}", unit, f"{what}: {where}", scale)
        for core, where in CORES.items()
        for name, unit, what, scale in _CORE
    ),
    *(
        _of_statement(f"{name}_{level}", unit, what.format(_nth(level)), scale)
        for level in range(INNERMOST)
        for name, unit, what, scale in _LEVELS
    ),
    *(
        _of_statement(f"traffic_{kib}k", "bytes", f"into a cache of {kib} KiB, over threads_share")
        for kib in _KIB
    ),
    *(
        _of_statement(f"traffic_{kib}k_per_instance", "bytes", f"into a cache of {kib} KiB, per instance")
        for kib in _KIB
    ),
)
"""Of `compute` and `intrinsic` nodes."""

ACCESS_COSTS: tuple[CostField, ...] = (
    *(
        CostField(
            f"tile_bytes_{level}",
            ("access",),
            "bytes",
            f"of the cache lines that one run of the {_nth(level)} touches",
            "log2(1+x)",
        )
        for level in range(INNERMOST)
    ),
    CostField("whole_bytes", ("access",), "bytes", "of all cache lines that it touches", "log2(1+x)"),
    CostField("lane_bytes", ("access",), "bytes", "from one lane of a vector to the next", "log2(1+x)"),
    CostField(
        "register_vectors", ("access",), "registers", "or elements that straight code touches", "log2(1+x)"
    ),
    *(
        CostField(f"fetched_{kib}k", ("access",), "bytes", f"into a cache of {kib} KiB", "log2(1+x)")
        for kib in _KIB
    ),
)
"""Of `access` nodes that belong to a statement."""

LOOP_COSTS: tuple[CostField, ...] = (
    CostField("iteration_bytes", ("loop",), "bytes", "of lines that an iteration touches", "log2(1+x)"),
    CostField("run_bytes", ("loop",), "bytes", "of lines that one run of the loop touches", "log2(1+x)"),
    CostField("iteration_flops", ("loop",), "FLOP", "arithmetic operations of one iteration", "log2(1+x)"),
)  # fmt: skip
"""Of `loop` nodes. Bytes count each buffer once: the most that one access to it touches, and no more than
all of it."""

COST_FIELDS: tuple[CostField, ...] = (*STATEMENT_COSTS, *ACCESS_COSTS, *LOOP_COSTS)

SCALARS = tuple(f.name for f in _SCALARS)
LEVELS = tuple(name for name, *_ in _LEVELS)
"""Names of what is said of each of the innermost loops."""
