"""What the searches of `gnnperf tune` have in common, whatever the frontend."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from gnnperf.measure import Measurement
from gnnperf.retrieval.measured import Memory

TOLD = 8
"""Measured schedules of a nest that are reported: the fastest."""

C = TypeVar("C")


@dataclass
class Searching:
    """A transfer that searches. trials: per nest in all, those among them that the store already knows.
    memory: where measurements go, and where earlier ones are looked up; None: nowhere.

    advance: told of new trials, and what was found so far.

    Attributes:
        measured: trials of this run.
    """

    trials: int = 64
    memory: Memory | None = None
    advance: Callable[[int, str], None] = lambda _count, _doing: None
    measured: int = field(default=0, init=False)

    def _doubt(self, query: Any) -> str:
        return ""  # without a neighbour it is a search like any other


@dataclass
class TrialLog(Generic[C]):
    """What was measured on one nest. found: candidates with their measurements, in the order of the trials.
    origins: how many came from where. known: how many trials are of an earlier run."""

    found: list[tuple[C, Measurement]] = field(default_factory=list)
    origins: Counter[str] = field(default_factory=Counter)
    known: int = 0

    def add(self, origin: str, tried: Sequence[tuple[C, Measurement]]) -> None:
        """More trials."""
        self.found += tried
        self.origins[origin] += len(tried)

    def best(self) -> list[tuple[C, Measurement]]:
        """The fastest `TOLD`, or else failures."""
        return sorted(self.found, key=lambda pair: _runtime_s(pair[1]))[:TOLD]

    def summary(self, trials: int, exhausted: bool) -> dict[str, Any]:
        """`NestReport.search`. trials: of this run."""
        times = [_runtime_s(m) for _, m in self.found]
        doubling = [2**n for n in range(len(times).bit_length()) if 2**n < len(times)]
        points = [*doubling, len(times)] if times else []
        best = [min(times[:n]) for n in points]
        return {
            "trials": trials,
            "known": self.known,
            "exhausted": exhausted,
            "origins": {origin: count for origin, count in self.origins.items() if count},
            "statuses": dict(Counter(m.status for _, m in self.found)),
            "after": points,
            "best_s": [s if s < math.inf else None for s in best],
        }

    @property
    def words(self) -> str:
        """How fast the best is, for people."""
        best_s = min((_runtime_s(m) for _, m in self.found), default=math.inf)
        return f", best {best_s * 1e3:.4g} ms" if best_s < math.inf else ""


def _runtime_s(measurement: Measurement) -> float:
    return measurement.runtime_s or math.inf
