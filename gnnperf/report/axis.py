"""Logarithmic axes of the pictures that the pages draw themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MOST_TICKS = 6


@dataclass(frozen=True)
class LogAxis:
    """Values from `low` to `high`, both above 0, from `start` to `end` in a picture's own units."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def covering(
        cls, values: Iterable[float], start: float, end: float, least_ratio: float = 2.0, margin: float = 0.06
    ) -> LogAxis:
        """An axis with all of the values that are above 0, some room around them, and at least
        `least_ratio` from end to end."""
        logs = [math.log(v) for v in values if v > 0 and math.isfinite(v)] or [0.0]
        low, high = min(logs), max(logs)
        lacking = max(0.0, math.log(least_ratio) - (high - low)) / 2
        low, high = low - lacking, high + lacking
        room = (high - low) * margin
        return cls(math.exp(low - room), math.exp(high + room), start, end)

    def at(self, value: float) -> float:
        """Where a value is; beyond the ends, at the end."""
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.start + min(1.0, share) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, float]]:
        """(value, place) of round values, no more than can be labelled."""
        for steps in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            found = list(self._values(steps))
            if len(found) <= MOST_TICKS:
                return [(v, self.at(v)) for v in found]
        every = math.ceil(len(found) / MOST_TICKS)
        return [(v, self.at(v)) for v in found[::every]]

    def _values(self, steps: Iterable[float]) -> Iterable[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for decade in range(first, last + 1):
            for step in steps:
                # Not 10**decade * step: 3 * 1e-1 is not the number that people write.
                value = float(f"{step}e{decade}")
                if self.low <= value <= self.high:
                    yield value
