"""Names that a nest does not have yet."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from gnnperf.nests.ir import LoopNest


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with a number where it is taken."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


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
