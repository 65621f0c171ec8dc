"""Names that a nest does not have yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from gnnperf.nests.ir import LoopNest


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
