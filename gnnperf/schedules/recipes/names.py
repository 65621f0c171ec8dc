"""Names of the loops that scheduling makes, kept apart from those of the nest."""

from __future__ import annotations

from dataclasses import replace

from gnnperf.nests import LoopNest
from gnnperf.nests.analysis import rename_iterators
from gnnperf.nests.names import Names

SUFFIXES = ("_f", "_t", "_r", "_s")
"""Of the loops over fused tiles, cache tiles, register tiles and steps of an iterator."""


def unambiguous(nest: LoopNest) -> LoopNest:
    """Iterators renamed where the name of one of their tile loops is taken (`i` beside `i_t`)."""
    names = Names.of(nest)
    iterators = {lp.iterator for lp in nest.loops()}
    taken = iterators | set(nest.parameters)
    clashing = sorted(i for i in iterators if any(f"{i}{s}" in taken for s in SUFFIXES))
    if not clashing:
        return nest
    new = {name: names.fresh(name) for name in clashing}
    return replace(nest, body=tuple(rename_iterators(n, new) for n in nest.body))
