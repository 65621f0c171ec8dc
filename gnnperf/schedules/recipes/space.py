"""Sampling the schedule space of a nest: defaults, random recipes, mutations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from gnnperf.devices import AVX512, VectorUnit
from gnnperf.nests.analysis import band, is_data_dependent, is_reduction, read, write_only
from gnnperf.nests.combine import from_copy_to_copy
from gnnperf.nests.ir import Loop, LoopNest, loads, walk
from gnnperf.schedules.recipes.recipe import ORDERS, Recipe
from gnnperf.schedules.recipes.threads import span_bytes
from gnnperf.schedules.recipes.time_tiles import time_loops
from gnnperf.schedules.recipes.triangular_blas import matches

CHOICES: Mapping[str, tuple[Any, ...]] = {
    "order": tuple(ORDERS),
    "tile_P": (0, 0, 0, 1, 2, 4, 8, 16, 32),
    "tile_q": (0, 0, 8, 16, 32, 64, 128, 256),
    "tile_p": (0, 0, 32, 64, 128, 256, 512, 1024, 2048),
    "tile_R": (0, 0, 0, 8, 16, 32, 64),
    "tile_r": (0, 0, 32, 64, 128, 256, 512, 1024),
    "register_q": (0, 2, 4, 6, 8, 12),
    "register_p": (0, 1, 2, 3, 4, 8, 16),
    "register_r": (1, 2, 4, 8),
    "vector": ("auto", "auto", "p", "r", "none"),
    "parallel": ("spatial", "spatial", "spatial", "reduction", "none"),
    "omp_schedule": ("static", "static", "dynamic", "guided", "balanced"),
    "chunk": (0, 0, 1, 4, 16, 64),
    "collapse": (1, 1, 2, 3),
    "accumulate": (True, True, False),
    "pack": ("", "", "q", "p", "qp"),
    "unroll": (0, 0, 2, 4, 8),
    "prefetch": (0, 0, 4, 12, 32, 64, 96),
    "nontemporal": (False, False, False, True),
    "fuse": (0, 1, 4, 16, 64),
    "time_tile": (0, 0, 4, 8, 16),
    "combine": ("", "merge", "merge", "inline"),
    "library": (*("",) * 7, "blas"),
}
"""Values per field; a repeated value is more likely."""

DEFAULTS = (
    Recipe(order="row", accumulate=False),
    Recipe(order="row", register_p=4, register_r=4, fuse=1),
    Recipe(order="row", register_p=4, register_r=4, parallel="none", fuse=1),
    Recipe(order="row", register_p=4, register_r=4, fuse=32),
    Recipe(order="row", register_p=4, register_r=4, fuse=1, combine="merge"),
    Recipe(order="row", register_p=2, register_r=4, fuse=1, combine="inline"),
    Recipe(order="row", accumulate=False, fuse=1, combine="inline", vector="none"),
    Recipe(order="blocked", tile_q=64, tile_p=256, tile_r=256, register_q=6, register_p=4),
    Recipe(
        order="panel", tile_q=96, tile_p=256, tile_r=256, register_q=8, register_p=3, vector="p", pack="q"
    ),
    Recipe(order="dot", vector="r", register_r=4, register_q=4),
    Recipe(order="dot", register_r=8, register_q=1, parallel="reduction"),
    Recipe(order="tile2d", tile_q=32, tile_p=32, register_q=8, register_p=1),
    Recipe(order="strip", tile_p=1024, register_p=4),
    Recipe(order="row", register_p=8, prefetch=8, omp_schedule="balanced"),
    Recipe(order="rowtile", register_p=16, unroll=4, omp_schedule="balanced"),
    Recipe(order="rowtile", register_p=16, prefetch=12, omp_schedule="balanced"),
    Recipe(order="rowtile", register_p=16, prefetch=32, omp_schedule="balanced"),
    Recipe(order="rowtile", register_p=16, prefetch=64, omp_schedule="balanced", nontemporal=True),
    Recipe(order="row", register_p=4, register_r=4, library="blas"),
)
"""Starting points of every search: one for each way nests are usually made fast."""


LIBRARY = DEFAULTS[-1]
HEAVY = 1 << 18
"""Multiplications from which on a product is better left to a library than to loops that nobody tuned."""
HANDED_ON = 1 << 20
"""Bytes of scratch from which on what a product leaves is out of a core's cache when the next nest comes."""
ROWS_AT_ONCE = 128
"""Of a product, which a call computes before the next nest: few enough to stay in caches, and enough for
the call."""


def library_recipes(nest: LoopNest) -> list[Recipe]:
    """The recipe that calls a library, where that is hard to beat: for products of matrices, triangular
    systems and factorisations; and that with tiles of rows, where products hand much on to other nests."""
    found = [c for n in nest.body for c in matches(n, nest.buffers)]
    products = [c for c in found if not isinstance(c, Loop) and c.routine == "gemm" and c.work >= HEAVY]
    if not products and not any(isinstance(c, Loop) for c in found):
        return []
    scratch = (b for b in nest.buffers.values() if b.transient and b.scope == "global")
    hands_on = any(span_bytes(b) >= HANDED_ON for b in scratch)
    tiled = products and len(nest.body) > 1 and hands_on
    return [LIBRARY, replace(LIBRARY, fuse=ROWS_AT_ONCE)] if tiled else [LIBRARY]


OUT_OF_CACHE = 1 << 22
"""Bytes from which on arrays that every step of a loop over time goes through leave the caches in between."""
STEPS = 8
"""Of time that tiles of rows go through."""


def time_recipes(nest: LoopNest, recipe: Recipe) -> list[Recipe]:
    """A recipe, and a plain one, with the steps of time in tiles, where every step goes through more than
    caches hold."""
    if _swept_bytes(nest) < OUT_OF_CACHE:
        return []
    plain = Recipe(order="row", register_p=4, register_r=4)
    return list(dict.fromkeys(replace(r, time_tile=STEPS) for r in (recipe, plain)))


def copying_recipes(nest: LoopNest) -> list[Recipe]:
    """A plain recipe that goes from copy to copy, where steps of time can; in tiles of time, where every step
    goes through more than caches hold."""
    if from_copy_to_copy(nest) is None:
        return []
    # Rows of one sweep are half as far behind those of the one before as rows of two.
    steps = 2 * STEPS if _swept_bytes(nest) >= OUT_OF_CACHE else 0
    return [Recipe(order="row", register_p=4, register_r=4, combine="inline", time_tile=steps)]


def _swept_bytes(nest: LoopNest) -> int:
    return max((time.swept_bytes(nest.buffers) for time in time_loops(nest)), default=0)


def relevant_fields(nest: LoopNest) -> list[str]:
    """Fields that can change the schedule of this nest (others would only be noise in the search)."""
    bands = [band(n) for n in nest.body if isinstance(n, Loop)]
    local = {k for k, b in nest.buffers.items() if b.scope == "local"}
    loops = list(nest.loops())
    kinds = [[is_reduction(lp, b.statements, local) for lp in b.loops] for b in bands]
    reductions = max(map(sum, kinds), default=0)
    spatial = max((len(found) - sum(found) for found in kinds), default=0)
    dependent = any(is_data_dependent(lp) for lp in loops)
    indirect = any(loads(i) for s in nest.statements() for ld in loads(s.value) for i in ld.indices)
    names = ["order", "tile_p", "register_p", "vector", "parallel", "omp_schedule", "chunk"]
    names += ["tile_q", "register_q", "collapse"] if spatial >= 2 else []
    names += ["tile_P"] if spatial >= 3 else []
    names += ["nontemporal"] if write_only(nest) else []
    names += ["tile_r", "register_r", "accumulate", "unroll"] if reductions else []
    names += ["tile_R"] if reductions >= 2 else []
    names += ["pack"] if spatial >= 2 and any(map(read, nest.body)) else []
    names += ["prefetch"] if dependent or indirect else []
    blocks = (nest.body, *(lp.body for lp in loops))
    names += ["fuse", "combine"] if any(len(block) > 1 for block in blocks) else []
    names += ["time_tile"] if time_loops(nest) else []
    names += ["library"] if any(True for n in nest.body for _ in matches(n, nest.buffers)) else []
    return names


def random_recipe(nest: LoopNest, rng: Random, vectors: VectorUnit = AVX512) -> Recipe:
    """A recipe drawn at random over the fields that matter for the nest. vectors: of the machine."""
    values = {name: rng.choice(CHOICES[name]) for name in relevant_fields(nest)}
    return _repaired(Recipe(**values), nest, vectors)


def mutate(recipe: Recipe, nest: LoopNest, rng: Random, vectors: VectorUnit = AVX512) -> Recipe:
    """Change one to three fields; sizes move to a neighbouring value half of the time. vectors: of the
    machine."""
    names = relevant_fields(nest)
    for _ in range(50):
        changes: dict[str, Any] = {}
        for name in rng.sample(names, k=min(len(names), rng.choice((1, 1, 2, 3)))):
            changes[name] = _step(name, getattr(recipe, name), rng)
        mutant = _repaired(replace(recipe, **changes), nest, vectors)
        if mutant != recipe:
            return mutant
    return random_recipe(nest, rng, vectors)


def _step(name: str, value: Any, rng: Random) -> Any:
    choices = list(dict.fromkeys(CHOICES[name]))
    if isinstance(value, int) and not isinstance(value, bool) and value in choices and rng.random() < 0.5:
        at = choices.index(value) + rng.choice((-1, 1))
        return choices[min(max(at, 0), len(choices) - 1)]
    return rng.choice(choices)


def _repaired(recipe: Recipe, nest: LoopNest, vectors: VectorUnit) -> Recipe:
    """Resolve contradictions that would otherwise waste a trial, and tiles that no registers hold."""
    most = vectors.registers
    changes: dict[str, Any] = {}
    if recipe.vector == "r":
        changes |= {"accumulate": True, "register_p": 0}
        if recipe.register_q * recipe.register_r > most:
            changes["register_r"] = max(1, most // recipe.register_q)
    else:
        if recipe.vector != "auto":
            changes["register_r"] = 0
        if recipe.register_q * max(1, recipe.register_p) > most:
            changes["register_q"] = most // max(1, recipe.register_p)
    if recipe.parallel == "reduction" and "accumulate" not in relevant_fields(nest):
        changes["parallel"] = "spatial"
    if recipe.parallel == "none":
        changes |= {"omp_schedule": "static", "chunk": 0, "collapse": 1}
    if recipe.omp_schedule == "balanced" and not any(
        is_data_dependent(n) for n in walk(nest.body) if isinstance(n, Loop)
    ):
        changes["omp_schedule"] = "static"
    if recipe.omp_schedule == "balanced":
        changes |= {"chunk": 0, "collapse": 1}
    return replace(recipe, **changes)
