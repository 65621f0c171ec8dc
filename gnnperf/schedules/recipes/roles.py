"""Which role each loop of a band plays (see `recipe.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gnnperf.nests.analysis import (
    Band,
    accesses,
    bound_dependences,
    extent,
    is_data_dependent,
    is_reduction,
    stride,
    varies,
)
from gnnperf.nests.ir import Buffer, Loop

LANES = 8
"""Iterations below which a reduction is too short for vectors along it (of doubles, in 64 bytes)."""


@dataclass(frozen=True)
class Roles:
    """Iterators by role, in canonical (stride-minimising) order; `sequential` keep their place."""

    by_role: Mapping[str, tuple[str, ...]]
    sequential: tuple[str, ...]
    pinned: frozenset[str]
    """Iterators that other loops' bounds depend on: they cannot be unrolled and jammed."""
    contiguous: str
    """The role, p or r, along which fewer accesses are scattered."""
    is_contraction: bool
    """A reduction with spatial reuse (matrix products, convolutions): blocking pays."""

    def role(self, iterator: str) -> str:
        return next((role for role, names in self.by_role.items() if iterator in names), "s")


def assign_roles(band: Band, buffers: Mapping[str, Buffer], own: frozenset[str] | None = None) -> Roles:
    """`own`: local buffers that belong to one iteration of the band; all local ones by default."""
    local = {k for k, b in buffers.items() if b.scope == "local"} if own is None else set(own)
    found = [a for n in band.body for a in accesses(n) if a.load.buffer not in local]
    reductions = [lp for lp in band.loops if lp.independent and is_reduction(lp, band.statements, local)]
    sequential = [lp for lp in band.loops if not lp.independent]
    spatial = [lp for lp in band.loops if lp not in reductions and lp not in sequential]
    pinned = frozenset(name for lp in band.loops for name in bound_dependences(lp))

    def unit_strides(loop: Loop) -> float:
        steps = [(stride(a.load, loop.iterator, buffers), a.is_write) for a in found]
        return sum(1.0 + 0.5 * write for step, write in steps if step == 1)

    def scattered(loop: Loop) -> int:
        """Accesses that vectors along a loop would gather, in every step of the reduction: those that do not
        change with it are hoisted."""
        steps = [
            stride(a.load, loop.iterator, buffers)
            for a in found
            if any(varies(a.load, lp.iterator) for lp in reductions)
        ]
        return sum(step not in (0, 1) for step in steps)

    def reused_vectors(loop: Loop) -> int:
        """Accesses whose vectors along p serve all iterations of a loop."""
        return sum(varies(a.load, p.iterator) and not varies(a.load, loop.iterator) for a in found)

    def reuse(loop: Loop) -> int:
        return sum(1 for a in found if a.load.indices and not varies(a.load, loop.iterator))

    position = {lp.iterator: i for i, lp in enumerate(band.loops)}
    by_role: dict[str, tuple[str, ...]] = dict.fromkeys(("P", "q", "p", "R", "r"), ())
    vectorisable = [lp for lp in spatial if lp.iterator not in pinned and not is_data_dependent(lp)]
    if vectorisable:
        p = max(vectorisable, key=lambda lp: (unit_strides(lp), position[lp.iterator]))
        by_role["p"] = (p.iterator,)
        rest = [lp for lp in spatial if lp is not p]
    else:
        rest = spatial
    if rest:
        q = max(
            rest,
            key=lambda lp: (
                lp.iterator not in pinned,
                reused_vectors(lp) if reductions and vectorisable else 0,
                reuse(lp) if reductions else 0,
                position[lp.iterator],
            ),
        )
        by_role["q"] = (q.iterator,)
        by_role["P"] = tuple(lp.iterator for lp in rest if lp is not q)
    if reductions:
        r = max(reductions, key=lambda lp: (is_data_dependent(lp), unit_strides(lp), position[lp.iterator]))
        by_role["r"] = (r.iterator,)
        by_role["R"] = tuple(lp.iterator for lp in reductions if lp is not r)
    contiguous = "r" if reductions and not vectorisable else "p"
    if reductions and vectorisable and (extent(r) or LANES) >= LANES and scattered(r) < scattered(p):
        contiguous = "r"
    contraction = bool(reductions) and any(
        varies(a.load, reductions[0].iterator) and any(not varies(a.load, lp.iterator) for lp in spatial)
        for a in found
        if a.load.indices and not a.is_write
    )
    return Roles(
        by_role,
        tuple(lp.iterator for lp in sequential),
        pinned,
        contiguous,
        contraction and len(spatial) >= 2,
    )
