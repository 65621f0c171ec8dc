"""Names that scheduling invents, kept apart from those of the nest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gnnperf.nests.analysis import rename_iterators
from gnnperf.nests.ir import LoopNest

SUFFIXES = ("_f", "_t", "_r", "_s")
"""Of the loops over fused tiles, cache tiles, register tiles and steps of an iterator."""


@dataclass
class Names:
    """Numbered names that nothing in the nest has."""

    taken: set[str]
    number: int = field(default=0, init=False)

    @staticmethod
    def of(nest: LoopNest) -> Names:
        return Names({*nest.buffers, *nest.parameters, *(lp.iterator for lp in nest.loops())})

    def fresh(self, stem: str) -> str:
        while True:
            name = f"{stem}_{self.number}"
            self.number += 1
            if name not in self.taken:
                return name


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
