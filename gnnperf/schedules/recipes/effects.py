"""What a recipe would do to a program, estimated from its graph without applying it.

Sizes of tiles beside the loops they cut, what is left over, bytes that a tile touches, vectors that are
loaded or gathered, trips of the parallel loop, what the innermost loop walks over: the quantities by which
an engineer would judge a schedule on paper. A network that is given them need not learn arithmetic from a
few hundred nests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import ceil, isfinite, log2, nan, prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.graph import Node, ProgramGraph
from gnnperf.schedules.recipes.recipe import ROLES, Recipe
from gnnperf.schedules.recipes.statements import ScheduledStatement, StatementAccess, statements

JUDGED = 2
"""Statements that are looked at one by one, the costliest."""
CHEAP = frozenset({"add", "sub", "mul", "min", "max", "neg", "fma"})

Named = Iterator[tuple[str, float]]


def effects(
    graph: ProgramGraph, recipes: Sequence[Recipe], vectors: VectorUnit = AVX512
) -> NDArray[np.float32]:
    """f32[s, E] of s recipes on one unscheduled program. Sizes enter as log2; NaN where there is nothing
    to speak of, as the vectors of a statement without any. vectors: of the machine."""
    found = statements(graph, vectors)
    judged = found[:JUDGED]
    program = dict(_program(graph, found))
    for at, statement in enumerate(judged):
        program |= {f"{name}/{at}": value for name, value in _statement(statement)}
    column = {name: at for at, name in enumerate(effect_fields())}
    rows = np.full((len(recipes), len(column)), nan, dtype=np.float32)
    for name, value in program.items():
        rows[:, column[name]] = value
    for row, recipe in zip(rows, recipes, strict=True):
        for at, statement in enumerate(judged):
            for name, value in _effect(statement, recipe):
                row[column[f"{name}/{at}"]] = value
        row[column["fused_statements"]] = len(found) if recipe.fuse else 0
        row[column["combined_statements"]] = len(found) if recipe.combine else 0
    return rows


@cache
def effect_fields() -> tuple[str, ...]:
    """Names of the columns of `effects`; what ends in /0 is about the costliest statement, /1 the next."""
    strides = dict.fromkeys(ROLES, 1.0)
    example = ScheduledStatement(
        dict.fromkeys(ROLES, 2.0), 2, [StatementAccess(8, strides, False)], 2, 2, {}, True, 0, 0, AVX512.bytes
    )
    graph = ProgramGraph((Node("compute", {"dtype": "float64"}),), (), {})
    per_statement = [name for name, _ in _statement(example)]
    recipe = Recipe(parallel="spatial")
    per_statement += [name for name, _ in _effect(example, recipe)]
    return (
        *(name for name, _ in _program(graph, [example])),
        *(f"{name}/{at}" for at in range(JUDGED) for name in per_statement),
        "fused_statements",
        "combined_statements",
    )


def _log(value: float) -> float:
    return log2(1 + max(0.0, value))


def _program(graph: ProgramGraph, found: Sequence[ScheduledStatement]) -> Named:
    buffers = [n for n in graph.nodes if n.kind == "buffer" and n["transient"] and n["scope"] != "local"]
    scratch = sum(cast(float, n["size_bytes"]) for n in buffers)
    distinct = cast(float, graph.values.get("distinct_bytes", 0))
    intensity = cast(float, graph.values.get("arithmetic_intensity", 0))
    total = sum(s.cost for s in found)
    yield "statements", len(found)
    yield "cost", _log(total)
    yield "costliest_share", found[0].cost / total if found else nan
    yield "distinct_bytes", _log(distinct)
    yield "arithmetic_intensity", _log(intensity)
    yield "scratch_bytes", _log(scratch)
    yield "scratch_share", scratch / max(1.0, distinct)


def _statement(s: ScheduledStatement) -> Named:
    for role in ROLES:
        yield f"extent_{role}", _log(s.extents[role]) if role in s.extents else -1.0
    for role in "qpr":
        yield f"unit_{role}", s.unit(role)
        yield f"scattered_{role}", s.scattered(role)
        yield f"invariant_{role}", s.invariant(role)
    yield "sequential", _log(s.sequential_iterations - 1)
    yield "is_contraction", s.is_contraction
    yield "contiguous_p", s.contiguous == "p"
    yield "is_reduction", s.is_reduction
    yield "lanes", s.lanes
    yield "flops", s.flops
    yield "slow_operations", sum(n for name, n in s.operations.items() if name not in CHEAP)
    yield "indirect", sum(a.is_indirect for a in s.accesses)
    yield "varying_loops", s.varying_loops
    yield "data_dependent_loops", s.data_dependent_loops


def _effect(s: ScheduledStatement, recipe: Recipe) -> Named:
    """What one statement would become."""
    vector = s.contiguous if recipe.vector == "auto" else recipe.vector
    vector = vector if vector in s.extents else "none"
    register = {"P": 1.0, "R": 1.0}
    for role in "qpr":
        split = max(1, recipe.register(role)) * (s.lanes if role == vector else 1.0)
        register[role] = min(split, s.extent(role))
        yield f"register_trips_{role}", log2(s.extent(role) / split + 1e-3)
        yield f"register_rest_{role}", s.extent(role) % split / s.extent(role)
    tile = {role: min(recipe.tile(role) or s.extent(role), s.extent(role)) for role in ROLES}
    for role in ROLES:
        yield f"tile_{role}", log2(tile[role])
        yield f"tiles_{role}", log2(s.extent(role) / tile[role])
        yield f"tile_rest_{role}", s.extent(role) % tile[role] / s.extent(role)

    yield "vector_is_r", vector == "r"
    yield "vector_is_none", vector == "none"
    yield "vectors", log2(s.extent(vector) / s.lanes + 1e-3) if vector != "none" else nan
    yield "vector_unit", s.unit(vector) if vector != "none" else nan
    yield "vector_scattered", s.scattered(vector) if vector != "none" else nan

    accumulators = max(1, recipe.register_q) * max(1, recipe.register_p)
    yield "accumulators", log2(accumulators * (max(1, recipe.register_r) if vector == "r" else 1))
    loads = sum(_elements(a, register, "qpr") for a in s.accesses)
    yield "loads_per_operation", log2(1e-3 + loads / (register["q"] * register["p"] * register["r"]))
    yield "tile_bytes", _log(_footprint(s, tile))
    yield "tile_bytes_of_one_P", _log(_footprint(s, tile | {"P": 1.0}))
    yield "panel_bytes", _log(_footprint(s, register | {"R": tile["R"], "r": tile["r"]}))
    yield "all_bytes", _log(_footprint(s, {role: s.extent(role) for role in ROLES}))

    loops = _loops(s, recipe, vector, tile, register)
    yield from _innermost(s, loops)
    yield from _parallel(recipe, loops)
    yield "packed_q", s.invariant("q") if "q" in recipe.pack else 0
    yield "packed_p", s.invariant("p") if "p" in recipe.pack else 0
    yield "packed_scattered", s.scattered(vector) if recipe.pack and vector != "none" else 0
    is_product = s.is_contraction and s.operations.get("mul", 0) == 1 and s.flops == 2
    yield "library_call", bool(recipe.library) and is_product
    yield "library_in_vain", bool(recipe.library) and not is_product


def _elements(access: StatementAccess, sizes: dict[str, float], roles: Sequence[str]) -> float:
    """Distinct elements of an access in a tile, strides aside."""
    return prod(sizes[role] for role in roles if access.strides[role])


def _footprint(s: ScheduledStatement, sizes: dict[str, float]) -> float:
    """Bytes that a tile of these sizes touches."""
    return sum(a.element_bytes * _elements(a, sizes, ROLES) for a in s.accesses)


def _loops(
    s: ScheduledStatement, recipe: Recipe, vector: str, tile: dict[str, float], register: dict[str, float]
) -> dict[str, float]:
    """Token of the order (see `recipe.ORDERS`) -> trips, of the loops there would be, outermost first."""
    loops: dict[str, float] = {}
    for token in recipe.tokens:
        role, level = token[0], token[1]
        is_split = role in "qpr" and (recipe.register(role) > 1 or role == vector)
        if role not in s.extents:
            continue
        if level == "2" and tile[role] < s.extents[role]:
            loops[token] = s.extents[role] / tile[role]
        elif level == "1" and is_split:
            loops[token] = tile[role] / register[role]
        elif level == "0" and not is_split:  # else it is unrolled, or lanes
            loops[token] = tile[role]
    return loops


def _innermost(s: ScheduledStatement, loops: dict[str, float]) -> Named:
    token = next(reversed(loops), "")
    role = token[:1]
    steps = [abs(a.strides[role]) * a.element_bytes for a in s.accesses] if role else []
    yield "innermost_trips", log2(loops[token] + 0.5) if role else nan
    yield "innermost_unit", s.unit(role) if role else nan
    yield "innermost_scattered", s.scattered(role) if role else nan
    yield "innermost_invariant", s.invariant(role) if role else nan
    yield "innermost_reduces", role in ("R", "r")
    yield "innermost_is_p", role == "p"
    yield "innermost_stride_bytes", _log(max((step for step in steps if isfinite(step)), default=0.0))


def _parallel(recipe: Recipe, loops: dict[str, float]) -> Named:
    roles = {"spatial": "Pqp", "reduction": "Rr"}.get(recipe.parallel, "")
    shared = [token for token in loops if token[0] in roles]
    shared = shared[: max(1, recipe.collapse)] if recipe.parallel == "spatial" else shared[:1]
    trips = prod(loops[token] for token in shared)
    outside = list(loops)[: list(loops).index(shared[0])] if shared else []
    yield "parallel_trips", log2(trips + 0.5) if roles else nan
    yield "parallel_balance", trips / (2 * ceil(trips / 2)) if shared else nan  # of two threads
    yield "parallel_chunks", log2(trips / (recipe.chunk or max(1.0, trips / 2)) + 0.5) if shared else nan
    yield "parallel_entries", sum(log2(loops[token]) for token in outside) if shared else nan
